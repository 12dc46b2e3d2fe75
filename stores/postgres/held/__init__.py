"""Whether what governs is what the audit says: a file for each subject, each row held against its entry (OR-12)."""
