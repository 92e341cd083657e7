"""Text that language models write by themselves, or against each other, in place of a private one."""
