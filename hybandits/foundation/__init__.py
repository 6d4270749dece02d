"""What every room stands on: checks and wording of errors, compiling, interrupts, files."""
