"""What can be said from a log: views of it, models of its rewards, fitting, description, evaluation."""
