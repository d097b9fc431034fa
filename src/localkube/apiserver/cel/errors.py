"""What can be wrong with an expression: when it is compiled, and when it is evaluated."""


class CompileError(Exception):
    """The expression is none, or names what is not there. Says where, as cel-go does."""

    def __init__(self, expression: str, at: int, why: str, missing: str = "") -> None:
        """`missing`: the function that Kubernetes has and we have not."""
        lines = expression[:at].split("\n")
        row, column = len(lines), len(lines[-1])
        line = expression.split("\n")[row - 1]
        shown = f"ERROR: <input>:{row}:{column + 1}: {why}\n | {line}\n | {'.' * column}^"
        super().__init__(shown)
        self.missing = missing


class EvaluationError(Exception):
    """An expression has no value here. `&&` and `||` may do without it."""

    cost = 0  # of the evaluation that ended with it


class OutOfBudget(Exception):
    """An evaluation would take longer than anybody may take."""


def no_such_overload() -> EvaluationError:
    return EvaluationError("no such overload")
