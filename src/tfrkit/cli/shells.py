"""Completion scripts for bash, zsh and fish, written from the command objects.

The scripts are static: a press of Tab starts no Python.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

Shell = Literal["bash", "zsh", "fish"]

_CHOICES = re.compile(r"[a-z0-9-]+(\|[a-z0-9-]+)+")


@dataclass(frozen=True)
class Option:
    """One option: all its names, its help, and the words it takes: none for a flag, empty if they are not listed."""

    names: tuple[str, ...]
    help: str
    choices: tuple[str, ...]
    is_flag: bool


@dataclass(frozen=True)
class Verb:
    """A command by its words after `tfr`; the words that may follow it are commands or choices of its argument."""

    words: tuple[str, ...]
    help: str
    options: tuple[Option, ...]
    below: tuple[tuple[str, str], ...]

    @property
    def place(self) -> str:
        return " ".join(self.words)


def read_verbs(group: Any) -> list[Verb]:
    """Return every command of an application, `tfr` itself first."""
    return list(_walk(group, ()))


def make_script(shell: Shell, verbs: list[Verb]) -> str:
    """Return the completion script of a shell."""
    lines = {"bash": _write_bash, "zsh": _write_zsh, "fish": _write_fish}[shell](verbs)
    return "\n".join(lines) + "\n"


def _walk(command: Any, words: tuple[str, ...]) -> Iterator[Verb]:
    children = {name: child for name, child in getattr(command, "commands", {}).items() if not child.hidden}
    shown = [one for one in command.params if not getattr(one, "hidden", False)]
    options = [_read_option(one) for one in shown if one.param_type_name == "option"]
    options.append(Option(("--help", "-h"), "Show this message and exit.", (), True))
    below = [(name, _first_sentence(child.help)) for name, child in children.items()]
    for argument in shown:
        if argument.param_type_name == "argument":
            below += [(choice, "") for choice in _list_choices(argument)]
    yield Verb(words, _first_sentence(command.help), tuple(options), tuple(below))
    for name, child in children.items():
        yield from _walk(child, (*words, name))


def _read_option(parameter: Any) -> Option:
    names = tuple(sorted([*parameter.opts, *parameter.secondary_opts], key=len, reverse=True))
    return Option(names, _first_sentence(parameter.help or ""), _list_choices(parameter), bool(parameter.is_flag))


def _list_choices(parameter: Any) -> tuple[str, ...]:
    choices = getattr(parameter.type, "choices", None)
    if choices is None and _CHOICES.fullmatch(parameter.metavar or ""):
        choices = parameter.metavar.split("|")
    return tuple(map(str, choices or ()))


def _first_sentence(text: str) -> str:
    """Return the first sentence on one line, without the full stop."""
    first = inspect.cleandoc(text).split("\n\n")[0].replace("\n", " ")
    return re.split(r"[.;] |\.$", first)[0].strip()


def _list_places(verbs: list[Verb]) -> str:
    """Return the patterns of all commands for a `case`, each with a space before every word."""
    return "|".join(_quote(f" {verb.place}") for verb in verbs if verb.words)


# ---- bash ----


def _write_bash(verbs: list[Verb]) -> list[str]:
    lines = [
        "# Completion of tfr for bash, written by `tfr completion bash`.",
        "_tfr() {",
        "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} place= words= options= i",
        # The word after --format= is a word of its own for bash.
        '    if [ "$cur" = = ]; then cur=; elif [ "$prev" = = ]; then prev=${COMP_WORDS[COMP_CWORD-2]}; fi',
        "    for ((i = 1; i < COMP_CWORD; i++)); do",
        '        case "$place ${COMP_WORDS[i]}" in',
        f'            {_list_places(verbs)}) place="$place ${{COMP_WORDS[i]}}" ;;',
        "        esac",
        "    done",
        '    case "$place" in',
    ]
    for verb in verbs:
        key = _quote(f" {verb.place}" if verb.words else "")
        lines.append(f"        {key}) words={_quote(' '.join(word for word, _ in verb.below))}")
        lines.append(f"            options={_quote(' '.join(name for one in verb.options for name in one.names))}")
        for option in verb.options:
            if not option.is_flag:
                words = _quote(" ".join(option.choices))
                lines.append(f"            case $prev in {'|'.join(option.names)}) words={words} ;; esac")
        lines.append("            ;;")
    return [
        *lines,
        "    esac",
        "    case $cur in",
        '        -*) COMPREPLY=($(compgen -W "$options" -- "$cur")) ;;',
        # Without a match, `-o default` completes file names.
        '        *) COMPREPLY=($(compgen -W "$words" -- "$cur")) ;;',
        "    esac",
        "}",
        "complete -o default -o bashdefault -F _tfr tfr",
    ]


# ---- zsh ----


def _write_zsh(verbs: list[Verb]) -> list[str]:
    lines = [
        "#compdef tfr",
        "# Completion of tfr for zsh, written by `tfr completion zsh`.",
        "_tfr() {",
        "    local place= word prev=${words[CURRENT-1]}",
        "    local -a below options choices",
        "    for word in ${words[2,CURRENT-1]}; do",
        '        case "$place $word" in',
        f'            ({_list_places(verbs)}) place="$place $word" ;;',
        "        esac",
        "    done",
        '    case "$place" in',
    ]
    for verb in verbs:
        key = _quote(f" {verb.place}" if verb.words else "")
        lines.append(f"        ({key})")
        lines.append(f"            below=({_list_described(verb.below)})")
        pairs = [(name, one.help) for one in verb.options for name in one.names]
        lines.append(f"            options=({_list_described(pairs)})")
        for option in verb.options:
            if not option.is_flag:
                words = " ".join(option.choices) or "''"
                lines.append(f"            case $prev in ({'|'.join(option.names)}) below=() choices=({words}) ;; esac")
        lines.append("            ;;")
    return [
        *lines,
        "    esac",
        "    if [[ $PREFIX == -* ]]; then",
        "        _describe -o option options",
        "    elif (( $#choices )) && [[ -n $choices[1] ]]; then",
        "        compadd -- $choices",
        "    elif (( $#below )); then",
        "        _describe command below",
        "    else",
        "        _files",
        "    fi",
        "}",
        # Called by the completion system when the file lies in $fpath; registered when it is read by `source`.
        'if [[ $funcstack[1] == _tfr ]]; then _tfr "$@"; else compdef _tfr tfr; fi',
    ]


def _list_described(pairs: Any) -> str:
    return " ".join(_quote(word.replace(":", r"\:") + (f":{help}" if help else "")) for word, help in pairs)


# ---- fish ----


def _write_fish(verbs: list[Verb]) -> list[str]:
    lines = [
        "# Completion of tfr for fish, written by `tfr completion fish`.",
        f"set -g __tfr_places {' '.join(_quote(verb.place) for verb in verbs if verb.words)}",
        "function __tfr_at",
        "    set -l place",
        "    for word in (commandline -opc)[2..]",
        "        if contains -- (string join ' ' $place $word) $__tfr_places",
        "            set -a place $word",
        "        end",
        "    end",
        "    test (string join ' ' $place) = (string join ' ' $argv)",
        "end",
    ]
    for verb in verbs:
        start = f"complete -c tfr -n {_quote(f'__tfr_at {verb.place}'.strip())}"
        if verb.below:
            lines.append(f"{start} -f")
        lines += [f"{start} -a {word}{_describe(help)}" for word, help in verb.below]
        for option in verb.options:
            names = "".join(f" -l {name[2:]}" if name.startswith("--") else f" -s {name[1:]}" for name in option.names)
            value = "" if option.is_flag else f" -xa {_quote(' '.join(option.choices))}" if option.choices else " -r"
            lines.append(f"{start}{names}{value}{_describe(option.help)}")
    return lines


def _describe(help: str) -> str:
    return f" -d {_quote(help)}" if help else ""


def _quote(text: str) -> str:
    """Quote for all three shells: no quote of a help text survives, because they escape it in different ways."""
    return "'" + text.replace("'", "’").replace("\\", "/") + "'"
