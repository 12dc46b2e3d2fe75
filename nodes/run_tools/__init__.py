"""The tool loop (design section 1). ``node`` is the step."""
