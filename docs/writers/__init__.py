"""What writes the reference pages from the code."""
