"""The one style sheet that is computed: widths from 0 to 100 percent.

The policy of the pages forbids styles inside of HTML, so that text of a user can never become one.
So a bar that is 37 percent long has the class "p37", and one of which 37 percent are unused "u37".
"""


def percent_rules() -> str:
    return "".join(f".p{n}{{--p:{n}}}.u{n}{{--u:{n}}}" for n in range(101))
