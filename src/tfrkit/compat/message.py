"""Methods that all messages share, as in protobuf's generated classes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Self

from tfrkit import _native
from tfrkit.compat.containers import MessageMap, Messages, Values, copy_message


class Field:
    """One field of a message: a descriptor that returns the field's content."""

    name = ""

    def __set_name__(self, owner: type[Message], name: str) -> None:
        self.name = name

    def __get__(self, message: Message | None, owner: type[Message]) -> Any:
        if message is None:
            return self
        found = message._held.get(self.name)
        if found is None:
            found = message._held[self.name] = self.make(message)
        return found

    def __set__(self, message: Message, value: Any) -> None:
        raise AttributeError(
            f"assignment to field {self.name!r} is not allowed\n  use .CopyFrom(message), .extend(values) or [:]"
        )

    def make(self, message: Message) -> Any:
        """Make the content of an unset field."""
        raise NotImplementedError

    def fill(self, message: Message, value: Any) -> None:
        """Add content from a constructor or from another message."""
        raise NotImplementedError

    def is_set(self, message: Message) -> bool:
        """Whether the field has content to copy or to write."""
        return bool(message._held.get(self.name))


class ValuesField(Field):
    """A repeated field of numbers or bytes."""

    container: type[Any] = Values

    def __init__(self, kind: Any) -> None:
        self.kind = kind

    def make(self, message: Message) -> Any:
        return self.container(message, self.kind)

    def fill(self, message: Message, value: Any) -> None:
        self.__get__(message, type(message)).extend(value)


class MessagesField(ValuesField):
    """A repeated field of messages."""

    container = Messages


class MapField(ValuesField):
    """A map of names to messages."""

    container = MessageMap

    def fill(self, message: Message, value: Any) -> None:
        self.__get__(message, type(message)).merge(value)


class MessageField(Field):
    """A message inside a message. Until it is changed, it can be accessed but is not present."""

    def __init__(self, kind: type[Message], *, oneof: str | None = None) -> None:
        self.kind = kind
        self.oneof = oneof

    def make(self, message: Message) -> Message:
        child = self.kind()
        child._waits_for = (message, self)
        return child

    def fill(self, message: Message, value: Any) -> None:
        if self.name not in message._held:
            message._held[self.name] = copy_message(value, self.kind)
            self.take_place(message)
        else:
            child = self.__get__(message, type(message))
            child.MergeFrom(value if isinstance(value, self.kind) else copy_message(value, self.kind))

    def is_set(self, message: Message) -> bool:
        child = message._held.get(self.name)
        return child is not None and child._waits_for is None

    def take_place(self, message: Message) -> None:
        """Mark the child as present, and clear the other members of its oneof."""
        if self.oneof is not None and len(message._held) > 1:
            for field in message._ONEOFS[self.oneof]:
                if field is not self and field.is_set(message):
                    del message._held[field.name]
        message.SetInParent()


class Message(_native.MessageBase):
    """Base of the messages of `tf.train`. Unknown fields, which protobuf would keep, are dropped when parsing."""

    # Most messages are made, added to another one and serialized. Their content stays in `_frozen`: plain lists and
    # dicts that copies share and that nothing changes. Fields are made from it when the first field is accessed.
    # The core makes such messages; it calls `_init` for arguments that it does not take.
    __slots__ = ()
    _content: dict[str, Any]
    _frozen: Any
    _waits_for: tuple[Message, MessageField] | None
    _FIELDS: ClassVar[dict[str, Field]] = {}
    _ONEOFS: ClassVar[dict[str, list[MessageField]]] = {}

    def __init_subclass__(cls) -> None:
        cls._FIELDS = {name: field for name, field in vars(cls).items() if isinstance(field, Field)}
        cls._ONEOFS = {}
        for field in cls._FIELDS.values():
            if isinstance(field, MessageField) and field.oneof is not None:
                cls._ONEOFS.setdefault(field.oneof, []).append(field)

    if TYPE_CHECKING:  # that of the core has no types

        def __init__(self, *values: Any, **fields: Any) -> None: ...

    def _init(self, *values: Any, **fields: Any) -> None:
        if values:
            raise TypeError(f"{type(self).__name__} takes its fields by name, got {len(values)} without")
        self._held = {}
        self._waits_for = None
        for name, value in fields.items():
            field = self._field(name)
            if value is not None:
                field.fill(self, value)

    @property
    def _held(self) -> dict[str, Any]:
        """The content of each field by name."""
        if self._frozen is not None:
            frozen, self._frozen = self._frozen, None
            self._content = self._thaw(frozen)
        return self._content

    @_held.setter
    def _held(self, content: dict[str, Any]) -> None:
        self._content = content
        self._frozen = None

    def _thaw(self, frozen: Any) -> dict[str, Any]:
        """Make the fields from the frozen content."""
        raise NotImplementedError

    @classmethod
    def _of(cls, frozen: Any) -> Self:
        """Make a message from frozen content."""
        made = cls.__new__(cls)
        made._waits_for = None
        made._frozen = frozen
        return made

    @classmethod
    def _field(cls, name: str) -> Field:
        found = cls._FIELDS.get(name)
        if found is None:
            raise ValueError(f"{cls.__name__} has no field {name!r}, its fields are {', '.join(cls._FIELDS)}")
        return found

    # --- presence

    def SetInParent(self) -> None:
        """Make this message present in its parent."""
        if self._waits_for is not None:
            (parent, field), self._waits_for = self._waits_for, None
            field.take_place(parent)

    def HasField(self, name: str) -> bool:
        """Whether a message field is present, or any member of a oneof."""
        if name in self._ONEOFS:
            return self.WhichOneof(name) is not None
        field = self._field(name)
        if not isinstance(field, MessageField):
            raise ValueError(f"field {name!r} of {type(self).__name__} is repeated, it has values but no presence")
        return field.is_set(self)

    def WhichOneof(self, name: str) -> str | None:
        """Return the present member of a oneof, or None."""
        if name not in self._ONEOFS:
            raise ValueError(f"{type(self).__name__} has no oneof {name!r}")
        for field in self._ONEOFS[name]:
            if field.is_set(self):
                return field.name
        return None

    # --- content

    def Clear(self) -> None:
        """Remove all content."""
        self._held = {}
        self.SetInParent()

    def ClearField(self, name: str) -> None:
        """Remove one field; for the name of a oneof, its present member."""
        if name in self._ONEOFS:
            name = self.WhichOneof(name) or ""
        if name:
            self._field(name)
            self._held.pop(name, None)
            self.SetInParent()

    def CopyFrom(self, other: Self) -> None:
        """Become equal to another message."""
        if other is not self:
            self._require_same(other)
            self.Clear()
            self.MergeFrom(other)

    def MergeFrom(self, other: Self) -> None:
        """Merge another message: lists are extended, map entries replaced, messages merged."""
        self._require_same(other)
        self.SetInParent()
        for name, held in list(other._held.items()):
            field = self._FIELDS[name]
            if field.is_set(other):
                field.fill(self, held)

    def _copy(self) -> Self:
        """Return an equal message; changing one does not change the other."""
        # Constructors copy their arguments, so this runs several times per feature: no calls that can be avoided.
        if self._frozen is not None:
            return self._of(self._frozen)
        copied = self.__class__.__new__(self.__class__)
        copied._waits_for = None
        copied._held = mine = {}
        for name, held in self._held.items():
            if not isinstance(held, Message):
                mine[name] = held.copy_for(copied)
            elif held._waits_for is None:
                mine[name] = held._copy()
        return copied

    def _require_same(self, other: object) -> None:
        if type(other) is not type(self):
            raise TypeError(f"expected a {type(self).__name__}, got {type(other).__name__}")

    def ListFields(self) -> list[tuple[str, Any]]:
        """Return (name, value) of each field that is set."""
        return [(name, self._held[name]) for name, field in self._FIELDS.items() if field.is_set(self)]

    def IsInitialized(self) -> bool:
        return True

    # --- bytes

    def SerializeToString(self, *, deterministic: bool | None = None) -> bytes:
        """Serialize the message: map keys sorted, lists packed, so that equal messages give equal bytes."""
        raise NotImplementedError

    SerializePartialToString = SerializeToString

    def ByteSize(self) -> int:
        return len(self.SerializeToString())

    def ParseFromString(self, data: Any) -> int:
        """Replace the content by a serialized message; return its size in bytes."""
        parsed = self.FromString(data)
        self.Clear()
        self.MergeFrom(parsed)
        return len(data)

    def MergeFromString(self, data: Any) -> int:
        """Merge a serialized message."""
        self.MergeFrom(self.FromString(data))
        return len(data)

    @classmethod
    def FromString(cls, data: Any) -> Self:
        """Parse a serialized message. Raises `WireError` if the bytes are not one."""
        raise NotImplementedError

    # --- Python

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Message):
            return NotImplemented
        return type(other) is type(self) and self.SerializeToString() == other.SerializeToString()

    __hash__ = None  # type: ignore[assignment]

    def __deepcopy__(self, memo: Mapping[int, Any]) -> Self:
        return self._copy()

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self).FromString, (self.SerializeToString(),)

    def __str__(self) -> str:
        from tfrkit.compat.message_text import print_message

        return print_message(self)

    __repr__ = __str__
