"""Keys, values and header values as text: which decoder fits, why the others do not, and what is masked.

Pure: bytes in, text out. Every form is exact: numbers keep their digits, and bytes that are no text are shown as hexadecimal.
"""
