"""What all parts of the script use: its start, its messages, numbers in tables."""
import sys
import time

START = time.time()


def cdiv(a, b):
    return -(-a // b)


def say(*words):
    print(f"[{time.time() - START:6.1f}]", *words, file=sys.stderr, flush=True)


def short(error, limit=300):
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    text = " | ".join(lines[:1] + lines[-1:]) if len(lines) > 1 else "".join(lines)
    return f"{type(error).__name__}: {text}"[:limit]


def number(value, form="{:.3f}"):
    return form.format(value) if isinstance(value, (int, float)) else "-"
