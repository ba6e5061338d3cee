"""Studies beyond the paper: least noise, composition, wider guarantees, other data, a cohort."""
