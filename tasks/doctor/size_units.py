"""Bytes as people read them."""


def bytes_text(count: float) -> str:
    """``1.5 GB`` of a number of bytes, in powers of 1,000."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "bytes" or count >= 10 else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} TB"
