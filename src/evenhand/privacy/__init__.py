"""What a release of private data costs."""
