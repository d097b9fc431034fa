"""Rules whose costs kube-apiserver was asked for, all about one schema."""

from typing import Any

SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["name", "items"],
    "properties": {
        "name": {"type": "string"},
        "short": {"type": "string", "maxLength": 10},
        "word": {"type": "string", "enum": ["one", "three"]},
        "data": {"type": "string", "format": "byte"},
        "smallData": {"type": "string", "format": "byte", "maxLength": 20},
        "when": {"type": "string", "format": "date-time"},
        "day": {"type": "string", "format": "date"},
        "took": {"type": "string", "format": "duration"},
        "count": {"type": "integer"},
        "ratio": {"type": "number"},
        "on": {"type": "boolean"},
        "port": {"x-kubernetes-int-or-string": True},
        "shortPort": {"x-kubernetes-int-or-string": True, "maxLength": 5},
        "max-size": {"type": "integer"},
        "namespace": {"type": "string", "maxLength": 63},
        "names": {"type": "array", "items": {"type": "string"}},
        "few": {"type": "array", "maxItems": 5, "items": {"type": "string", "maxLength": 10}},
        "numbers": {"type": "array", "maxItems": 100, "items": {"type": "integer"}},
        "grid": {
            "type": "array",
            "maxItems": 10,
            "items": {
                "type": "array",
                "maxItems": 20,
                "items": {"type": "string", "maxLength": 30},
            },
        },
        "items": {
            "type": "array",
            "maxItems": 50,
            "items": {
                "type": "object",
                "required": ["key"],
                "properties": {
                    "key": {"type": "string", "maxLength": 20},
                    "value": {"type": "string"},
                    "tags": {
                        "type": "array",
                        "maxItems": 4,
                        "items": {"type": "string", "maxLength": 8},
                    },
                },
            },
        },
        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
        "fewLabels": {
            "type": "object",
            "maxProperties": 6,
            "additionalProperties": {"type": "string", "maxLength": 12},
        },
        "maps": {
            "type": "object",
            "maxProperties": 3,
            "additionalProperties": {"type": "object", "properties": {"n": {"type": "integer"}}},
        },
        "inner": {
            "type": "object",
            "properties": {
                "deep": {
                    "type": "object",
                    "properties": {"text": {"type": "string", "maxLength": 7}},
                }
            },
        },
    },
}
RULES = r"""
true
self.name == 'x'
self.name == self.short
self.name != self.name
self.short < self.name
self.short >= 'abc'
self.count > 5
self.count == 5
self.count == self.count
self.count + 1 < 100
-self.count < 3
self.ratio * 2.0 > 1.0
self.ratio > 1
self.on
!self.on
!(self.on && self.count > 1)
self.on || self.count > 1 || self.name == 'x'
self.on ? self.name == 'a' : self.short == 'b'
(self.on ? self.name : self.short) == 'x'
(self.on ? self.short : 'abc').contains('x')
has(self.name)
has(self.inner.deep) && has(self.inner.deep.text)
self.inner.deep.text.size() > 2
size(self.name) < 100
self.name.size() > 0
self.name.contains('abc')
self.name.contains(self.short)
self.name.contains(self.name)
self.name.startsWith('abc')
self.name.startsWith(self.name)
self.short.endsWith(self.name)
self.name.matches('^[a-z]+$')
self.short.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')
self.name.matches(self.short)
matches(self.name, '^a')
self.name.matches(self.name)
self.word == 'one'
self.word.contains('o')
self.data == b'abc'
self.smallData == b'abc'
string(self.smallData) == 'x'
bytes(self.short) == b'x'
bytes(self.name).size() > 2
self.when > timestamp('2020-01-01T00:00:00Z')
self.when == timestamp('2020-01-01T00:00:00Z')
self.took < duration('5m')
self.when + self.took > timestamp('2020-01-01T00:00:00Z')
self.day.getFullYear() > 2000
self.day.getHours('UTC') > 2
string(self.count) == '1'
int(self.short) == 1
double(self.short) > 0.5
string(self.when) == 'x'
type(self.port) == int
type(self.port) == int ? self.port > 1 : self.port.startsWith('a')
self.port == 5
self.port == 'abc'
string(self.port) == 'x'
self.port > 5
self.shortPort == 'abc'
self.max__dash__size > 3
self.__namespace__ == 'x'
'a' in self.names
'a' in self.few
self.count in self.numbers
'a' in ['a', 'b']
'a' in self.labels
self.name in self.fewLabels
self.labels['a'] == 'x'
self.fewLabels['a'].contains('x')
self.labels.size() < 3
self.names.all(n, n == 'a')
self.names.all(n, n.contains('a'))
self.few.all(n, n == 'a')
self.few.all(n, n.startsWith('a') && n.endsWith('b'))
self.few.exists(n, n.startsWith('a'))
self.few.exists_one(n, n == 'x')
self.few.filter(n, n == 'a').size() > 1
self.few.map(n, n + 'x').size() > 1
self.few.map(n, n.size() > 2, n + 'x').all(m, m.startsWith('a'))
self.few.map(n, n)[0] == 'x'
self.few.all(a, self.few.all(b, a == b))
self.few.all(a, self.few.all(b, self.few.all(c, self.few.all(d, a + b + c + d != 'z'))))
self.names.all(a, self.names.all(b, a == b))
self.numbers.all(n, n > 1)
self.numbers.sum() > 5
self.numbers.max() > self.numbers.min()
self.numbers.isSorted()
self.few.isSorted()
self.names.isSorted()
self.few.indexOf('a') > 1
self.few.lastIndexOf('a') > 1
self.short.indexOf('a') > 1
self.name.lastIndexOf('a', 3) > 1
self.few[0] == 'a'
self.few[0].contains('a')
self.few == self.few
self.names == self.few
self.few + self.names == self.few
(self.few + ['a']).all(x, x.contains('b'))
(self.few + self.few).size() > 3
self.grid.all(row, row.all(cell, cell.size() > 1))
self.grid.all(row, row.exists(cell, cell.matches('^a')))
self.grid[0][1].contains('a')
self.grid.map(row, row.size()).sum() > 3
self.items.all(i, i.key != '')
self.items.all(i, has(i.value) && i.value.contains('x'))
self.items.all(i, self.items.exists_one(j, i.key == j.key))
self.items.all(i, i.tags.all(t, t in self.few))
self.items.filter(i, i.key == 'a').all(i, i.tags.size() > 1)
self.items.map(i, i.key).all(k, k.startsWith('a'))
self.items.map(i, i.tags).all(t, t.size() > 1)
self.items[0].tags[1] == 'a'
self.items.exists(i, i == i)
self.labels.all(k, k.startsWith('a'))
self.labels.all(k, self.labels[k] == 'x')
self.fewLabels.all(k, self.fewLabels[k].contains('x'))
self.fewLabels.exists(k, k == 'x')
self.fewLabels.all(k, v, k == v)
self.fewLabels.exists(k, v, v.contains('x'))
self.fewLabels.existsOne(k, v, v == 'x')
self.few.all(i, v, i < 3 && v != 'x')
self.fewLabels.transformList(k, v, v).size() > 2
self.fewLabels.transformList(k, v, v != '', v + k).size() > 2
self.fewLabels.transformMap(k, v, v + 'x').size() > 2
self.fewLabels.transformMapEntry(k, v, {v: k}).size() > 2
self.maps.all(k, self.maps[k].n > 1)
self.maps.map(k, k).size() > 1
{'a': 1, 'b': 2}.size() == 2
{'a': self.name}['a'] == 'x'
{'a': self.name}.all(k, k == 'a')
[1, 2, 3].all(x, x > self.count)
['a', 'bc'].exists(x, self.name.startsWith(x))
['a', 'bc'].exists(x, self.name.contains(x))
[self.name, self.short].all(x, x.contains('a'))
[self.name][0].contains('a')
[self.few, self.names].all(l, l.all(x, x == 'a'))
self.name.lowerAscii() == 'x'
self.name.upperAscii().contains('A')
self.short.trim().size() > 1
self.name.substring(1) == 'a'
self.name.substring(1, 3).contains('a')
self.name.replace('a', 'b') == 'x'
self.short.replace('a', 'bcd').contains('x')
self.short.replace('', 'bcd').contains('x')
self.short.replace('abc', 'd').contains('x')
self.short.replace(self.short, self.short).contains('x')
self.short.replace('a', 'bcd', 1).size() > 2
self.short.split(',').size() > 1
self.short.split(',').all(p, p.size() > 1)
self.short.split(',', 2).all(p, p.startsWith('a'))
self.name.split(',').all(p, p.startsWith('a'))
self.short.split(',')[0] == 'a'
self.short.split(',').map(p, p.size()).sum() > 1
self.few.join(',') == 'x'
self.few.join().contains('x')
self.names.join(',').contains('x')
self.short.split(',').join('-') == 'x'
self.short.charAt(1) == 'a'
'%s is %d'.format([self.name, self.count]) == 'x'
self.name.format([1]) == 'x'
self.short + self.short == 'x'
(self.short + self.name).contains('x')
self.name + self.name + self.name == 'x'
quantity(self.short).isGreaterThan(quantity('1Gi'))
quantity(self.name).isInteger()
isQuantity(self.short)
quantity(self.short).add(2).asInteger() == 3
quantity('1') == quantity(self.short)
sets.contains(self.few, ['a'])
sets.contains(self.few, self.names)
sets.intersects(self.numbers, [1, 2])
sets.equivalent(self.few, self.few)
self.few.distinct().size() > 1
self.few.sort().size() > 1
self.numbers.sort() == self.numbers
self.numbers.distinct().all(n, n > 1)
self.grid.flatten().size() > 1
self.grid.flatten(2).size() > 1
self.numbers.slice(1, 3).size() > 1
self.numbers.slice(0, self.count).size() > 1
self.numbers.reverse()[0] == 1
lists.range(5).all(i, i < 10)
lists.range(self.count).all(i, i < 10)
self.numbers.first().hasValue()
self.numbers.last().orValue(3) > 2
self.?name.orValue('') == 'x'
self.?name.hasValue()
self.?name.orValue('abc').contains('x')
self.?few.orValue([]).all(x, x == 'a')
self.?count.orValue(1) > 2
self.?inner.?deep.?text.orValue('') == 'x'
self.?inner.deep.text.orValue('') == 'x'
self.?name.optMap(n, n.size() > 2).orValue(false)
self.?name.optMap(n, n.contains('x')).orValue(false)
self.?few.optMap(f, f.all(x, x == 'a')).orValue(true)
self.?name.optFlatMap(n, optional.of(n.size())).orValue(1) > 2
self.labels[?'a'].orValue('') == 'x'
self.labels[?'a'].hasValue()
self.few[?0].orValue('b') == 'a'
optional.of(self.count).value() > 2
optional.of(self.name).or(optional.none()).hasValue()
optional.ofNonZeroValue(self.name).hasValue()
self == oldSelf
self.name == oldSelf.name
self.items == oldSelf.items
self.items.all(i, i in oldSelf.items)
self.few.all(f, f in oldSelf.few)
self.metadata.name == 'x'
self.metadata.name.startsWith('a')
self.kind == 'Foo'
dyn(self.name) == 'x'
dyn(self.few).all(x, x == 'a')
dyn(self.count) == 5
dyn(self.name) + 'a' == 'x'
has(self.labels.a) && self.labels.a == 'x'
self.few.all(x, self.labels[x] == x)
self.fewLabels.map(k, self.fewLabels[k]).all(v, v.contains('a'))
self.fewLabels.map(k, self.fewLabels[k].size()).sum() > 2
self.few.filter(x, x != 'a').map(x, x.size()).sum() > 4
self.few.filter(x, x != 'a').exists(x, x.contains('b'))
self.items.filter(i, i.key == 'a').map(i, i.value).exists(v, v.contains('b'))
(self.on ? self.few : self.names).all(x, x == 'a')
(self.on ? [self.name] : [self.short])[0].contains('x')
self.count % 2 == 0 && self.count / 2 > 1 && self.count - 1 > 0
string(1.5) == '1.5'
bool(self.short)
uint(self.count) > 1u
self.when.getHours() in self.numbers
self.took.getSeconds() > 5
type(self.name) == string
self.name in [self.short, 'b']
self.few.map(x, {x: 1}).size() > 1
self.few.map(x, [x, x]).all(y, y.size() > 1)
self.few.exists(x, self.items.exists(i, i.key == x && i.tags.exists(t, t == x)))
""".strip().splitlines()
