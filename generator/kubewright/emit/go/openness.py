"""Objects that keep fields that no type declares: what reads and writes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kubewright.emit.go.text import string

KEPT = "map[string]apiextensionsv1.JSON"


def member_name(taken: Sequence[str]) -> str:
    """The field that holds what is not declared, apart from those ``taken``."""
    name, count = "Unknown", 2
    while name in taken:
        name, count = f"Unknown{count}", count + 1
    return name


def methods(types: Mapping[str, tuple[str, Sequence[str]]]) -> list[str]:
    """The methods of each type, by its name: its field for the undeclared, and the wire names of those declared."""
    blocks = [
        _METHODS.format(name=name, member=member, declared="".join(f", {string(each)}" for each in declared))
        for name, (member, declared) in types.items()
    ]
    return [*blocks, _FUNCTIONS] if blocks else []


_METHODS = """// UnmarshalJSON reads an object; fields that are not declared go to {member}.
func (in *{name}) UnmarshalJSON(data []byte) error {{
	type declared {name}
	if err := utiljson.Unmarshal(data, (*declared)(in)); err != nil {{
		return err
	}}
	unknown, err := undeclared(data{declared})
	in.{member} = unknown
	return err
}}

// MarshalJSON writes an object, with the fields of {member} behind those declared.
func (in {name}) MarshalJSON() ([]byte, error) {{
	type declared {name}
	data, err := json.Marshal(declared(in))
	if err != nil {{
		return nil, err
	}}
	return joined(data, in.{member})
}}"""
_FUNCTIONS = """// undeclared gives the fields of an object but for those that its type declares.
func undeclared(data []byte, declared ...string) (map[string]apiextensionsv1.JSON, error) {
	var fields map[string]apiextensionsv1.JSON
	if err := json.Unmarshal(data, &fields); err != nil {
		return nil, err
	}
	for _, name := range declared {
		delete(fields, name)
	}
	if len(fields) == 0 {
		return nil, nil
	}
	return fields, nil
}

// joined puts further fields at the end of an object.
func joined(data []byte, fields map[string]apiextensionsv1.JSON) ([]byte, error) {
	if len(fields) == 0 {
		return data, nil
	}
	more, err := json.Marshal(fields)
	if err != nil || string(data) == "{}" {
		return more, err
	}
	return append(append(data[:len(data)-1], ','), more[1:]...), nil
}"""
