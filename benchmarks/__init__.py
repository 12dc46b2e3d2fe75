"""What is measured, with peers where there are any: ``recuerdo bench NAME``. Each module has a ``measure``."""
