"""Risk of a person: facts about persons that anonymised text still reveals."""
