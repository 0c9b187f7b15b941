"""Refusals of the console's lists."""

from reasoncodes.base.errors import DomainError


class LookupRefused(DomainError):
    """This list does not filter, order or search by what the address asks for.

    A list understands its own filters, the order of its visible columns, its search box and its page numbers. Anything
    else is refused, because a filter by a hidden column would tell what is in it. Open the list without the part after
    the question mark, and choose a filter there. A saved filter from an older version may have to be saved again.
    """

    code = "lookup-refused"
    status = 400
    title = "This list has no such filter"
