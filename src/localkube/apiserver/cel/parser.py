"""From tokens to the tree of an expression. Raises CompileError."""

from localkube.apiserver.cel.errors import CompileError
from localkube.apiserver.cel.syntax import (
    Call,
    Choice,
    Index,
    ListOf,
    Literal,
    Logic,
    Loop,
    MapOf,
    Name,
    Node,
    Present,
    Select,
)
from localkube.apiserver.cel.tokens import INT64, Token, tokens_of

MAX_LENGTH = 100_000
_MAX_DEPTH = 60  # of brackets in brackets: each costs a dozen calls of the parser
_RELATIONS = ("<", "<=", ">", ">=", "==", "!=", "in")
_RESERVED = frozenset(
    {
        *("as", "break", "const", "continue", "else", "for", "function", "if", "import", "let"),
        *("loop", "package", "namespace", "return", "var", "void", "while"),
    }
)
_EXPRESSION = (
    "{'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, "
    "STRING, BYTES, IDENTIFIER}"
)
_CONSTANTS = {"true": True, "false": False, "null": None}
# Macros over lists and maps: how many names, how many expressions.
_LOOPS = {
    "all": ((1, 1), (2, 1)),
    "exists": ((1, 1), (2, 1)),
    "exists_one": ((1, 1),),
    "existsOne": ((1, 1), (2, 1)),
    "filter": ((1, 1),),
    "map": ((1, 1), (1, 2)),
    "transformList": ((2, 1), (2, 2)),
    "transformMap": ((2, 1), (2, 2)),
    "transformMapEntry": ((2, 1), (2, 2)),
    "optMap": ((1, 1),),
    "optFlatMap": ((1, 1),),
}


def parse(expression: str) -> Node:
    if len(expression) > MAX_LENGTH:
        size = f"size: {len(expression)}, limit: {MAX_LENGTH}"
        raise CompileError("", 0, f"expression code point size exceeds limit: {size}")
    parser = _Parser(expression)
    node = parser.expression()
    parser.expect_end()
    return node


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = tokens_of(text)
        self._place = 0
        self._depth = 0

    def expression(self) -> Node:
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise self._error(self._now, f"expression recursion limit exceeded: {_MAX_DEPTH}")
        condition = self._logic("||")
        if self._takes("?"):
            sign = self._before
            yes = self._logic("||")
            if not self._takes(":"):
                text = f"Syntax error: mismatched input '{self._now.text}' expecting ':'"
                raise self._error(self._now, text)
            condition = Choice(sign.at, condition, yes, self.expression())
        self._depth -= 1
        return condition

    def expect_end(self) -> None:
        now = self._now
        if now.kind != "end":
            raise self._error(now, f"Syntax error: extraneous input '{now.text}' expecting <EOF>")

    @property
    def _now(self) -> Token:
        return self._tokens[self._place]

    @property
    def _before(self) -> Token:
        return self._tokens[self._place - 1]

    def _takes(self, sign: str) -> bool:
        now = self._now
        if now.text != sign or now.kind not in ("sign", "name"):
            return False
        self._place += 1
        return True

    def _expect(self, sign: str) -> None:
        if not self._takes(sign):
            raise self._error(self._now, f"Syntax error: missing '{sign}' at '{self._now.text}'")

    def _error(self, token: Token, why: str) -> CompileError:
        return CompileError(self._text, token.at, why)

    def _logic(self, sign: str) -> Node:
        lower = self._relation if sign == "&&" else lambda: self._logic("&&")
        parts, at = [lower()], self._now.at
        while self._takes(sign):
            parts.append(lower())
        return parts[0] if len(parts) == 1 else Logic(at, sign, tuple(parts))

    def _relation(self) -> Node:
        left = self._sum()
        while self._now.text in _RELATIONS and self._now.kind in ("sign", "name"):
            sign = self._next()
            name = "@in" if sign.text == "in" else f"_{sign.text}_"
            left = Call(sign.at, name, None, (left, self._sum()))
        return left

    def _sum(self) -> Node:
        left = self._product()
        while self._now.kind == "sign" and self._now.text in ("+", "-"):
            sign = self._next()
            left = Call(sign.at, f"_{sign.text}_", None, (left, self._product()))
        return left

    def _product(self) -> Node:
        left = self._unary()
        while self._now.kind == "sign" and self._now.text in ("*", "/", "%"):
            sign = self._next()
            left = Call(sign.at, f"_{sign.text}_", None, (left, self._unary()))
        return left

    def _next(self) -> Token:
        self._place += 1
        return self._before

    def _unary(self) -> Node:
        signs = []
        while self._now.kind == "sign" and self._now.text in ("!", "-"):
            signs.append(self._next())
        node = self._member()
        if signs and any(each.text != signs[0].text for each in signs):
            raise self._error(signs[1], f"Syntax error: extraneous input '{signs[1].text}'")
        is_negated = len(signs) % 2 == 1 and signs[0].text == "-"
        number = node.value if isinstance(node, Literal) else None
        if type(number) is int and number == INT64 and not is_negated:
            raise CompileError(self._text, node.at, "invalid int literal")
        if len(signs) % 2 == 0:
            return node
        if signs[0].text == "-" and isinstance(node, Literal) and type(node.value) in (int, float):
            return Literal(signs[0].at, -node.value)
        return Call(signs[0].at, "!_" if signs[0].text == "!" else "-_", None, (node,))

    def _member(self) -> Node:
        node = self._primary()
        while self._now.kind == "sign":
            sign = self._now
            if self._takes("."):
                node = self._selected(node, sign)
            elif self._takes("["):
                optional = self._takes("?")
                node = Index(sign.at, node, self.expression(), optional)
                self._expect("]")
            elif sign.text == "{" and isinstance(node, Name | Select):
                raise self._error(sign, "objects of a type cannot be made here")
            else:
                return node
        return node

    def _selected(self, node: Node, sign: Token) -> Node:
        optional = self._takes("?")
        field = self._next()
        if field.kind not in ("name", "escaped") or field.text == "in":
            what = f"no viable alternative at input '{sign.text}'"
            raise self._error(field, f"Syntax error: {what}")
        if field.kind == "escaped" or optional or not self._takes("("):
            return Select(sign.at, node, field.text, optional)
        opening = self._before
        args = self._arguments(")")
        if field.text in _LOOPS:
            loop = self._loop(field.text, opening, node, args)
            if loop is not None:
                return loop
        return Call(opening.at, field.text, node, args)

    def _loop(self, macro: str, opening: Token, over: Node, args: tuple[Node, ...]) -> Loop | None:
        for names, expressions in _LOOPS[macro]:
            if len(args) == names + expressions:
                break
        else:
            return None
        found = []
        for arg in args[:names]:
            if not isinstance(arg, Name):
                raise CompileError(self._text, arg.at, "argument must be a simple name")
            if arg.name in found:
                raise CompileError(self._text, arg.at, f"duplicate variable name: {arg.name}")
            found.append(arg.name)
        return Loop(opening.at, macro, over, tuple(found), args[names:])

    def _arguments(self, closing: str) -> tuple[Node, ...]:
        args: list[Node] = []
        while not self._takes(closing):
            if args:
                self._expect(",")
                if closing != ")" and self._takes(closing):
                    break
            args.append(self.expression())
        return tuple(args)

    def _primary(self) -> Node:
        token = self._next()
        if token.kind == "literal":
            return Literal(token.at, token.value)
        if token.text == "(" and token.kind == "sign":
            node = self.expression()
            self._expect(")")
            return node
        if token.text == "[" and token.kind == "sign":
            return self._list(token)
        if token.text == "{" and token.kind == "sign":
            return self._map(token)
        if token.text == "." and self._now.kind == "name":
            token = self._next()
        if token.kind == "name":
            return self._named(token)
        what = f"mismatched input '{token.text}' expecting {_EXPRESSION}"
        raise self._error(token, f"Syntax error: {what}")

    def _named(self, token: Token) -> Node:
        if token.text in _CONSTANTS:
            return Literal(token.at, _CONSTANTS[token.text])
        if token.text in _RESERVED or token.text == "in":
            raise self._error(token, f"reserved identifier: {token.text}")
        if not self._takes("("):
            return Name(token.at, token.text)
        opening = self._before
        args = self._arguments(")")
        if token.text != "has":
            return Call(opening.at, token.text, None, args)
        if len(args) != 1 or not isinstance(args[0], Select) or args[0].optional:
            at = args[0].at if args else opening.at
            raise CompileError(self._text, at, "invalid argument to has() macro")
        return Present(opening.at, args[0].operand, args[0].field)

    def _list(self, opening: Token) -> Node:
        items: list[tuple[Node, bool]] = []
        while not self._takes("]"):
            if items:
                self._expect(",")
                if self._takes("]"):
                    break
            optional = self._takes("?")
            items.append((self.expression(), optional))
        return ListOf(opening.at, tuple(items))

    def _map(self, opening: Token) -> Node:
        entries: list[tuple[Node, Node, bool]] = []
        while not self._takes("}"):
            if entries:
                self._expect(",")
                if self._takes("}"):
                    break
            optional = self._takes("?")
            key = self.expression()
            self._expect(":")
            entries.append((key, self.expression(), optional))
        return MapOf(opening.at, tuple(entries))
