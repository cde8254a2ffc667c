"""Pages that try to leave something behind in a tab, and honest pages that would show it."""

_TAILWIND = "https://cdn.jsdelivr.net/npm/tailwindcss@2.2.19/dist/tailwind.min.css"

LEAVING = {
    "style set": "<style title=left>h1 { color: red }</style><h1>x",
    "style set in a drawing": "<svg><style title=left>h1 { color: red }</style></svg>",
    "style set of a link": f"<link rel=stylesheet title=left href='{_TAILWIND}'>",
    "alternate style set": f"<link rel='alternate stylesheet' title=left href='{_TAILWIND}'>",
    "default style": "<meta http-equiv=default-style content=left>",
    "policy": "<meta http-equiv=Content-Security-Policy content=\"style-src 'none'; img-src 'none'\">",
    "referrer policy": "<meta name=referrer content=unsafe-url>",
    "registered property": "<style>@property --size { syntax: '<color>'; inherits: false; initial-value: red }</style>",
    "font": "<style>@font-face { font-family: Left; src: local('DejaVu Sans Mono') }</style>"
    "<p style='font-family:Left'>x",
    "font named like ours": "<style>@font-face { font-family: serif; src: local('DejaVu Sans Mono') }</style>"
    "<style>@font-face { font-family: 'DejaVu Serif'; src: local('DejaVu Sans Mono') }</style><p>x",
    "counter style": "<style>@counter-style left { system: cyclic; symbols: '*' } li { list-style: left }</style><li>x",
    "keyframes": "<style>@keyframes left { to { margin-left: 300px } }</style><p style='animation:left 1s forwards'>x",
    "layers": "<style>@layer second, first; @layer first { h1 { color: red } }</style><h1>x",
    "view transition": "<style>@view-transition { navigation: auto } * { view-transition-name: left }</style><p>x",
    "focus far below": "<div style='height:5000px'></div><input autofocus><a href='' autofocus>x</a>",
    "focus in a scroller": "<div style='height:50px;overflow:auto'><p style='height:999px'></p><input autofocus></div>",
    "snapping": "<html style='scroll-snap-type:both mandatory'><p style='margin:5000px;scroll-snap-align:end'>x",
    "huge": "<body style='margin:0;zoom:9'><div style='width:9000px;height:9000px;background:red'>",
    "right to left": "<html dir=rtl lang=ar style='writing-mode:vertical-rl'><p style='width:5000px'>x",
    "dark": "<meta name=color-scheme content=dark><html style='color-scheme:dark;background:#111'><p>x",
    "window size": "<meta name=viewport content='width=300, initial-scale=4'><p>x",
    "open things": "<dialog open>x</dialog><details open name=a>x</details><div popover>x</div>",
    "visited": "<meta http-equiv=refresh content='0;url=https://picsum.photos/30/20'><a href='#'>x</a>",
    "names": "<base href='https://left.invalid/' target=left><iframe name=left></iframe><form name=body>",
    "loading late": "<div style='height:9000px'></div><img loading=lazy src='late.png'><img src='late2.png'>",
    "loading ahead": "<link rel=preload as=image href='https://picsum.photos/30/20'>",
    "pictures": "<img src='https://picsum.photos/10/10' width=500><img src='https://picsum.photos/30/20'>",
    "form state": "<form autocomplete=on><input name=a value=left><textarea name=b>left</textarea></form>",
    "moving": "<marquee>x</marquee><video controls autoplay></video><progress></progress>",
    "script tag": "<script src='https://cdn.tailwindcss.com'></script><body class='bg-red-500'>",
    "no quirks": "<!doctype html><p>x",
    "shadow root": "<div><template shadowrootmode=open><style>:host { color: red }</style>x</template></div>",
}
"""Each is shown before an honest page on the same tab."""

HONEST = {
    "plain": "<style>@layer first, second; @layer second { h1 { color: teal } } @layer first { h1 { color: blue } }"
    "p { --size: 30px; width: var(--size); background: #eee; font-family: Left, serif; animation: left 1s forwards }"
    "li { list-style: left } a:visited, :target, input:focus { color: red; background: red }</style>"
    "<h1>Heading</h1><p>word</p><li>item</li><a href=''>self</a> <a href='#'>top</a> <a href='https://picsum.photos/30/20'>"
    "picture</a><form name=f><input name=a><textarea name=b></textarea></form><img src='https://picsum.photos/30/20'>"
    "<img src='https://picsum.photos/10/10'><dialog>closed</dialog><details name=a>closed</details>",
    "titled": "<style title=mine>h1 { color: teal }</style><style title=yours>h1 { color: red }</style><h1>Heading",
    "focused": "<style>:focus { outline: 9px solid red }</style><div style='height:60px;overflow:auto'>"
    "<p style='height:500px'>above</p><input autofocus></div>",
    "late": "<p style='height:900px'>above</p><img loading=lazy src='https://picsum.photos/30/20'>"
    "<img loading=lazy src=a.png>",
    "either colour": "<meta name=color-scheme content='light dark'><p style='color:light-dark(teal, red)'>x</p><input>",
    "shadow": "<div style='color:teal'><template shadowrootmode=open><h1>inside</h1></template></div>",
    "tailwind": f"<link href='{_TAILWIND}' rel=stylesheet><body class='bg-blue-500'><p class='w-1/2 left'>x</p>",
}
"""Each would look different with something of another page about it."""
