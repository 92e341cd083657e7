"""Made-up values: people, places, organisations, numbers and dates."""
