"""Search for schedules by measuring: `deplo tune`, `deplo.compile(..., tune="60s")`."""
