"""YAML documents ↔ values: the pydantic models are the one table behind schema, CRDs and reference (§8)."""
