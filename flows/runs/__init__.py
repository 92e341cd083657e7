"""One run from its preparation to its record, whoever schedules its stages."""
