"""What runs the pages and compares what they print."""
