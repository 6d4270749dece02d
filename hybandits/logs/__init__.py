"""Logged rounds: one table form (`table`), readers that fill it, and the features made of it (`features`)."""
