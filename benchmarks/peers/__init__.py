"""Those who are measured beside each other: a class each, whose `round()` does what the others do and gives a rate."""
