"""What users write and read: wire structs, no behaviour."""
