"""`tfr view`: look at records in the browser."""

from __future__ import annotations

import webbrowser
from typing import Annotated, Literal

import typer

from tfrkit.cli.exit_codes import ExitCode
from tfrkit.cli.options import FilePaths
from tfrkit.cli.output import print_line, say

HELP = """Look at records in the browser.

\b
  tfr view data/
  tfr view 'train-*' --where 'label = 3' --no-browser
  tfr view old/ --compare new/ --out kept/

Starts a server on this machine only and opens its page: a grid of all records, each with all its features and bytes;
filters in SQL, histograms, damaged records in their places. Files are read in place and never changed. The address
contains a token; without it nothing is answered. Over SSH, the command that forwards the port is printed, too.
Without an index the first records are shown while the others are counted. Ends with Ctrl-C. Needs tfrkit[view], for
filters also tfrkit[sql].
"""

Port = Annotated[int, typer.Option("--port", min=0, max=65535, metavar="N", help="Port; 0 is any free one.")]
Host = Annotated[str, typer.Option("--host", metavar="ADDRESS", help="Address to listen on.")]
AllowHost = Annotated[
    list[str] | None,
    typer.Option("--allow-host", metavar="NAME", help="Name of this server in a browser, with --host; repeatable."),
]
NoBrowser = Annotated[bool, typer.Option("--no-browser", help="Print the address only.")]
Where = Annotated[str | None, typer.Option("--where", metavar="SQL", help="Show the records that match a condition.")]
Record = Annotated[int | None, typer.Option("--record", min=0, metavar="N", help="Open this record.")]
Lang = Annotated[
    Literal["en", "zh"] | None, typer.Option("--lang", metavar="en|zh", help="Language; default that of the browser.")
]
Out = Annotated[str | None, typer.Option("--out", metavar="DIR", help="Folder for exported records and tags.")]
Idle = Annotated[
    float | None, typer.Option("--idle", min=0.001, metavar="MINUTES", help="End after this time without a request.")
]
Compare = Annotated[str | None, typer.Option("--compare", metavar="PATH", help="A second dataset to compare with.")]


def run(
    paths: FilePaths,
    port: Port = 0,
    host: Host = "127.0.0.1",
    allow_host: AllowHost = None,
    no_browser: NoBrowser = False,
    where: Where = None,
    record: Record = None,
    lang: Lang = None,
    out: Out = None,
    idle: Idle = None,
    compare: Compare = None,
) -> int:
    """Serve the page until Ctrl-C."""
    from tfrkit.view.server import Server
    from tfrkit.view.viewer import Options, name_folder

    server = Server(
        [paths, *([[compare]] if compare is not None else [])],
        Options(where, record, lang, name_folder(out)),
        host=host,
        port=port,
        allow_hosts=allow_host or (),
        idle_minutes=idle,
    )
    try:
        if not server.is_local:
            say(f"note: reachable from other machines, by everyone who has the address - at {host}")
        tunnel = server.tunnel
        if tunnel is not None:
            print_line(f"on your machine: {tunnel}")
        print_line(server.address)
        if not no_browser and tunnel is None:
            webbrowser.open(server.address)
        server.wait()
    except KeyboardInterrupt:
        say("")
    finally:
        server.stop()
    return ExitCode.DONE
