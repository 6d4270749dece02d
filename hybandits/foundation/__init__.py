"""What all other rooms build on: checks of arguments, compiling, interrupts, files."""
