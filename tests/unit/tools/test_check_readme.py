from tools.check_readme import Step, matches, steps_of

DOCUMENT = """
<!-- run: background until "ready" -->
```console
$ make run
```

```console
$ echo a; echo b
a
b
$ true
```

```python
print(1)
```

```text
1
```
"""


def test_blocks_become_steps_with_what_they_must_print() -> None:
    assert steps_of(DOCUMENT) == [
        Step("console", 'background until "ready"', "make run", None),
        Step("console", "", "echo a; echo b", "a\nb\n"),
        Step("console", "", "true", None),
        Step("python", "", "print(1)\n", "1\n"),
    ]


def test_dots_stand_for_anything_and_the_rest_is_literal() -> None:
    assert matches("a ...\n...\nlast (1)", "a thing\nmore\nand more\nlast (1)")
    assert not matches("a ...\nlast", "b thing\nlast")
    assert not matches("1+1", "11")
