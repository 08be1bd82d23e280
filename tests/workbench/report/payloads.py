"""Names that try to become markup, script, style, template or data: two hundred and more.

Each would set `window.pwned` and the title of the page, if anything ran it.
"""

from __future__ import annotations

from itertools import product

RUN = "window.pwned=1;document.title='pwned'"
QUOTED = RUN.replace("'", "&quot;")

_TAGS = (
    '<img src=x {event}="{run}">',
    '<svg {event}="{run}">',
    "<svg/{event}={bare}>",
    '<body {event}="{run}">',
    '<details open {event}="{run}">',
    '<video><source {event}="{run}">',
    '<input autofocus {event}="{run}">',
    '<math {event}="{run}">',
    '<iframe {event}="{run}">',
    '<g {event}="{run}">',
)
_EVENTS = ("onerror", "onload", "ontoggle", "onfocus", "onmouseover", "OnClIcK", "onanimationstart")
_BREAKS = (
    "",
    "'>",
    '">',
    "`>",
    "</title>",
    "</style>",
    "</script>",
    "</textarea>",
    "-->",
    "]]>",
    "</svg>",
    "</table>",
    "</td>",
)
_SCRIPTS = (
    f"<script>{RUN}</script>",
    f"<ScRiPt>{RUN}</sCrIpT>",
    f"<script\t>{RUN}</script\n>",
    f"<svg><script>{RUN}</script></svg>",
    f"<script src=data:text/javascript,{RUN}></script>",
)
_ATTRIBUTES = (
    f'" onmouseover="{RUN}',
    f"' onmouseover='{QUOTED}",
    f'" autofocus onfocus="{RUN}" x="',
    f'x" style="background:url(javascript:{RUN})',
    f'" tabindex=1 onfocus={RUN} ',
    f"` onload=`{RUN}",
    f'"/><animate onbegin="{RUN}" attributeName=x dur=1s>',
    '" id="readout',
    '" class="js-only',
)
_LINKS = (
    f"javascript:{RUN}",
    f"JaVaScRiPt:{RUN}",
    f"java\tscript:{RUN}",
    f"\x01javascript:{RUN}",
    f"data:text/html,<script>{RUN}</script>",
    f'<a href="javascript:{RUN}">x</a>',
    f"vbscript:{RUN}",
    "<base href=//evil.invalid/>",
    "<link rel=stylesheet href=//evil.invalid/x>",
    "<meta http-equiv=refresh content=0;url=//evil.invalid>",
    "<img src=//evil.invalid/x.png>",
    f"<form action=javascript:{RUN}><button>x",
    f"<object data=javascript:{RUN}>",
    f"<embed src=javascript:{RUN}>",
    f'<iframe srcdoc="<script>parent.{RUN}</script>">',
)
_TEMPLATES = (
    "{{7*7}}",
    "{{ config }}",
    "{% for x in range(9) %}x{% endfor %}",
    "{{''.__class__.__mro__}}",
    "${7*7}",
    "<%= 7*7 %>",
    "#{7*7}",
    "{{self.__init__.__globals__}}",
    "{# comment #}",
    "{%raw%}",
    "%s%n%x",
    "{0.__class__}",
    "\\{{7*7}}",
)
_STYLES = (
    "</style><style>*{display:none}",
    "expression(alert(1))",
    "url(//evil.invalid/x)",
    "@import '//evil.invalid/x.css';",
    "\\3c script\\3e",
    "}*{background:url(//evil.invalid)}",
    "behavior:url(#default)",
    "/*",
    "*/",
    "';}body{display:none}",
    "-moz-binding:url(x)",
)
_DATA = (
    f'"]}}}}</script><script>{RUN}</script>',
    '"}],"trees":{"tree":[]}}',
    "\\u003cscript\\u003e",
    f"\\u003cscript\\u003e{RUN}\\u003c/script\\u003e",
    '","__proto__":{"x":1}',
    "__proto__",
    "constructor",
    "<!--<script>",
    "<!--",
    "--><!--",
    "//<![CDATA[",
    "null",
    "\\",
    '\\"',
    "\\x3cb\\x3e",
)
_CHARACTERS = (
    "\u2028",
    "a\u2029b",
    "abc\u202egpj.exe",
    "\u2066x\u2069",
    "\u200b\u200d",
    "\ufeffx",
    "\x00",
    "a\x00b",
    "\x1b]0;pwned\x07",
    "\r\nSet-Cookie: x",
    "\ud800",
    "\uff1cscript\uff1e",
    "\u0130",
    "a\u0300" * 40,
    "\U0001f468\u200d\U0001f469",
    "\u05d0\u05d1\u05d2",
    "=cmd|' /C calc'!A0",
    "@SUM(1)",
    "\t\n ",
    "",
    "x" * 5000,
    "&lt;script&gt;",
    "&#60;script&#62;",
    "&",
    "&amp;amp;",
    "%3Cscript%3E",
    "+ADw-script+AD4-",
)


def payloads() -> list[str]:
    """All of them, each once, always in the same order."""
    tags = [
        tag.format(event=event, run=RUN, bare=RUN.replace("'", ""))
        for tag, event in product(_TAGS, _EVENTS)
    ]
    scripts = [stop + script for stop, script in product(_BREAKS, _SCRIPTS)]
    found = [*tags, *scripts, *_ATTRIBUTES, *_LINKS, *_TEMPLATES, *_STYLES, *_DATA, *_CHARACTERS]
    return list(dict.fromkeys(found))
