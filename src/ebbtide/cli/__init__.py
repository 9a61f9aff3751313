"""Parse, call one workflow, render, exit code."""
