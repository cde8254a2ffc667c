"""Pages that try to get at files and the network, to break the browser, or to outlast it.

`{port}` is a port of this machine on which someone listens, `{secret}` the path of a picture that nobody may see,
`{style}` that of a stylesheet.
"""

SCRIPTS = {
    "endless loop": "<script>while (true) {}</script><p>loop",
    "endless promises": "<script>(function f() { Promise.resolve().then(f) })()</script>",
    "endless timers": "<script>setInterval(() => { for (let i = 0; i < 1e9; i++); }, 0)</script>",
    "memory": "<script>let a = []; while (true) a.push(new Array(1e6).fill(1))</script>",
    "dialogs": "<script>while (true) alert('x')</script><body onload=\"confirm('y'); prompt('z')\">",
    "leaving dialog": "<script>onbeforeunload = () => 'stay'; location = 'http://127.0.0.1:{port}/'</script>",
    "print": "<script>window.print()</script>",
    "popups": "<script>for (;;) window.open('http://127.0.0.1:{port}/')</script>",
    "fetch": "<script>fetch('http://127.0.0.1:{port}/'); fetch('file://{secret}')</script>",
    "request object": "<script>x = new XMLHttpRequest(); x.open('GET', 'http://localhost:{port}/'); x.send()</script>",
    "socket": "<script>new WebSocket('ws://127.0.0.1:{port}/')</script>",
    "event source": "<script>new EventSource('http://127.0.0.1:{port}/')</script>",
    "beacon": "<script>navigator.sendBeacon('http://127.0.0.1:{port}/', 'x')</script>",
    "web rtc": "<script>new RTCPeerConnection({iceServers: [{urls: 'stun:127.0.0.1:{port}'}]}).createOffer()</script>",
    "service worker": "<script>navigator.serviceWorker.register('/worker.js')</script>",
    "worker": "<script>new Worker(URL.createObjectURL(new Blob(['for(;;);'])))</script>",
    "script in attributes": '<img src=x onerror="for(;;);"><svg onload="for(;;);"><details open ontoggle="for(;;);">',
    "script address": "<iframe src=\"javascript:for(;;);\"></iframe><a href='javascript:1' autofocus>x</a>",
    "growing document": "<script>for (;;) document.write('<p>more')</script>",
}

REACHING_OUT = {
    "refresh": "<meta http-equiv=refresh content='0;url=http://127.0.0.1:{port}/'><p>x",
    "refresh to itself": "<meta http-equiv=refresh content='0'><p>x",
    "refresh to a file": "<meta http-equiv=refresh content='0;url=file://{secret}'>",
    "frames": "<iframe src='http://127.0.0.1:{port}/'></iframe>"
    "<iframe src='file://{secret}' width=900 height=600></iframe>",
    "frame in a frame": "<iframe srcdoc=\"<iframe src='file://{secret}'></iframe><img src='http://127.0.0.1:{port}/'>\">",
    "frameset": "<frameset cols='50%,50%'><frame src='file://{secret}'><frame src='http://127.0.0.1:{port}/'></frameset>",
    "objects": "<object data='file://{secret}'></object><embed src='http://127.0.0.1:{port}/x.pdf'>",
    "images": "<img src='file://{secret}'><img src='http://127.0.0.1:{port}/a.png'><img src='http://[::1]:{port}/b.png'>",
    "many names of loopback": "<img src='http://localhost:{port}/'><img src='http://127.1:{port}/'>"
    "<img src='http://0x7f000001:{port}/'><img src='http://0.0.0.0:{port}/'><img src='http://a.localhost:{port}/'>",
    "image set": "<img srcset='http://127.0.0.1:{port}/a.png 1x, file://{secret} 2x'>"
    "<picture><source srcset='file://{secret}'><img></picture>",
    "stylesheets": "<link rel=stylesheet href='file://{style}'><style>@import 'file://{style}';</style>",
    "loopback stylesheet": "<link rel=stylesheet href='http://127.0.0.1:{port}/a.css'>",
    "css addresses": "<style>body { background: url(file://{secret}); list-style: url(http://127.0.0.1:{port}/a) }"
    "@font-face { font-family: f; src: url(http://127.0.0.1:{port}/f.woff) } p { font-family: f }</style><p>x",
    "drawings": "<svg width=900 height=600><image href='file://{secret}' width=900 height=600 />"
    "<use href='http://127.0.0.1:{port}/a.svg#x' /><foreignObject width=99 height=99><iframe src='file://{secret}'>"
    "</iframe></foreignObject></svg>",
    "entities": "<?xml version='1.0'?><!DOCTYPE html [<!ENTITY x SYSTEM 'file://{secret}'>]><p>&x;",
    "base address": "<base href='file:///'><link rel=stylesheet href='{style}'><img src='{secret}'>",
    "hints": "<link rel=preconnect href='http://127.0.0.1:{port}/'><link rel=dns-prefetch href='//localhost:{port}'>"
    "<link rel=prefetch href='http://127.0.0.1:{port}/'><link rel=preload as=image href='http://127.0.0.1:{port}/'>"
    "<link rel=modulepreload href='http://127.0.0.1:{port}/'><link rel=prerender href='http://127.0.0.1:{port}/'>",
    "speculation": '<script type=speculationrules>{"prerender": [{"source": "list", "urls": '
    '["http://127.0.0.1:{port}/"]}]}</script>',
    "manifest and icon": "<link rel=manifest href='http://127.0.0.1:{port}/'><link rel=icon href='http://127.0.0.1:{port}/'>",
    "media": "<video autoplay src='http://127.0.0.1:{port}/'></video><audio autoplay src='file://{secret}'></audio>"
    "<video poster='file://{secret}'><track default src='http://127.0.0.1:{port}/'></video>",
    "form": "<form action='http://127.0.0.1:{port}/'><input autofocus type=submit formtarget=_blank></form>",
    "download": "<a download href='file://{secret}'>x</a><iframe src='data:application/octet-stream,x'></iframe>",
    "policy report": "<meta http-equiv=Content-Security-Policy content=\"img-src 'none'; report-uri "
    "http://127.0.0.1:{port}/\"><img src='http://page.invalid/x.png'>",
    "other schemes": "<img src='ftp://127.0.0.1:{port}/'><img src='chrome://gpu'><iframe src='view-source:file://{secret}'>"
    "</iframe><iframe src='blob:null/x'></iframe><img src='filesystem:http://x/'><iframe src='chrome-extension://x/'>",
    "picture service that redirects": "<img src='http://picsum.photos@127.0.0.1:{port}/300/200'>"
    "<img src='http://picsum.photos.localhost:{port}/300/200'>",
}

TOO_MUCH = {
    "30 MB": "<p>" + "x" * 30_000_000,
    "a million elements": "<b></b>" * 1_000_000,
    "a quarter of a million elements": "<p>x" * 250_000,
    "deep nesting": "<div>" * 100_000 + "x",
    "deep tables": "<table><tr><td>" * 2_000,
    "100,000 pixels high": "<div style='height:100000px;background:linear-gradient(red,blue)'>",
    "100,000 pixels wide": "<div style='width:100000px;height:50px;background:red'>",
    "a billion pixels": "<div style='width:33554400px;height:33554400px;background:red'>",
    "far away": "<div style='position:absolute;top:9999999px;left:9999999px'>x</div>",
    "one long word": "<p>" + "w" * 900_000,
    "huge picture": "<img src='https://picsum.photos/99999/99999'>" * 20,
    "many pictures": "".join(f"<img src='https://picsum.photos/{n + 1}/10'>" for n in range(1500)),
    "many refused requests": "".join(f"<img src='http://127.0.0.1:{{port}}/{n}'>" for n in range(1500)),
    "drawing that multiplies": "<svg><defs><g id=a0><rect width=9 height=9 /></g>"
    + "".join(f"<g id=a{n + 1}>" + f"<use href=#a{n} />" * 10 + "</g>" for n in range(9))
    + "</defs><use href=#a9 /></svg>",
    "drawing of filters": "<svg width=1300 height=600><filter id=f>"
    + "<feTurbulence baseFrequency=.9 numOctaves=99 /><feGaussianBlur stdDeviation=999 />" * 60
    + "</filter><rect width=1300 height=600 filter=url(#f) /></svg>",
    "css that multiplies": "<style>p { --a0: xxxxxxxxxx;"
    + "".join(f"--a{n + 1}: " + f"var(--a{n}) " * 10 + ";" for n in range(12))
    + "content: var(--a12) } p::before { content: var(--a12) }</style><p>x",
    "css shadows": "<style>div { width: 900px; height: 900px; filter: blur(200px) drop-shadow(0 0 99px red);"
    + "backdrop-filter: blur(99px); box-shadow: "
    + ",".join(f"0 0 {n + 500}px {n}px red" for n in range(200))
    + " }</style>"
    + "<div>" * 60,
    "css selectors": "<style>"
    + "".join(f":has(* > *:nth-child({n}n + 1) ~ * *) p {{ color: red }}" for n in range(1, 300))
    + "</style>"
    + "<div><p>x</div>" * 3_000,
    "endless animation": "<style>@keyframes k { to { margin-left: 9px } } p { animation: k .1s infinite }</style><p>x",
    "marks upon marks": "<p>a" + "\u0301" * 200_000,
    "rules made of rules": "<script src='https://cdn.tailwindcss.com'></script><style type='text/tailwindcss'>"
    + "".join(f".a{n + 1} {{ @apply {f'a{n} ' * 8} }}" for n in range(12))
    + ".a0 { @apply p-4 m-4 }</style><p class=a12>x",
    "regular growth": "<style>body { columns: 9999; column-width: 1px }</style>" + "<p>word " * 3_000,
}

LEFT_BEHIND = {
    "policy": "<meta http-equiv=Content-Security-Policy content=\"style-src 'none'; img-src 'none'\"><p>x",
    "default style": "<meta http-equiv=default-style content=other><style title=other>p { color: red }</style>",
    "dark page": "<meta name=color-scheme content=dark><style>:root { color-scheme: dark }</style><p>x",
    "file loaded ahead": "<link rel=preload as=image href='https://picsum.photos/30/20'><p>x",
    "file of another kind": "<link rel=stylesheet href='https://fonts.googleapis.com/'><base href='https://x.example/'>",
    "picture of another size": "<img src='https://picsum.photos/10/10' width=500><img src='https://picsum.photos/30/20'>",
    "scrolled page": "<body style='overflow:hidden;zoom:3' dir=rtl><div style='width:9000px;height:9000px'><a id=a>x",
    "page language": "<html lang=ar dir=rtl style='writing-mode:vertical-rl;font-size:99px'><p>x",
    "things above all others": "<dialog open popover>x</dialog><div popover=manual id=p>y</div>" * 20,
    "transitions between pages": "<style>@view-transition { navigation: auto } :root { view-transition-name: x }"
    "p { view-transition-name: match-element }</style><p>x",
    "names of the whole document": "<style>@layer a, b; @property --x { syntax: '*'; inherits: true; initial-value: x }"
    "@counter-style decimal { system: cyclic; symbols: 'x' } @page { size: 1px }"
    "@font-palette-values --x { font-family: 'DejaVu Serif' } @scope (html) { h1 { color: red } }</style><ol><li>x",
    "keys of prototypes": "<script src='https://cdn.tailwindcss.com'></script><script>tailwind.config = "
    "{'__proto__': {a: 1}, constructor: {prototype: {x: 1}}, theme: {extend: {'__proto__': {colors: {b: 'red'}}}}}"
    "</script><p class='bg-b'>x",
    "page named like ours": "<style>@font-face { font-family: 'DejaVu Serif'; src: url(data:font/woff,x) }</style><p>x",
}

MALFORMED = {
    "empty": "",
    "white space": " \n\t ",
    "no tags": "just words",
    "nul characters": "<p>\x00a\x00<b\x00>x",
    "lone surrogates": "<p>\ud800 \udfff",
    "unclosed": "<div class='a\" <p <b <!-- <style> p { color",
    "bytes of a picture": "\x89PNG\r\n\x1a\n\x00\x00\x00",
    "other encoding": "<meta charset=utf-16>"
    "<meta http-equiv=Content-Type content='text/html;charset=utf-7'>+ADw-script+AD4-",
    "shadowed names": "<form name=body><input name=getAttribute><input name=parentNode></form>"
    "<img name=documentElement>"
    "<img name=createTreeWalker><form name=getAnimations></form><img name=scrollingElement><a id=getComputedStyle></a>"
    "<form id=JSON></form><img name=activeElement><script></script>",
    "hidden root": "<html style='display:none'><body>x",
    "replaced root": "<style>html, body { display: contents; position: fixed; overflow: hidden; height: 0 }</style>x",
    "vanishing": "<style>* { all: initial; zoom: 0.0001; transform: scale(1e9) }</style><p>x",
    "right to left": "<html dir=rtl><div style='width:5000px;background:red'>x</div>",
    "lengths without a number": "<p style='border:calc(1/0*1px) solid;font-size:calc(0/0*1px);width:calc(infinity*1px);"
    "border-radius:calc(infinity*1%);opacity:calc(0/0)'>x<p style='font-size:1e9px;letter-spacing:1e9px'>x",
    "colours without a number": "<p style='color:color-mix(in oklch,red,color(xyz nan infinity -infinity));"
    "background:color(display-p3 9 9 9);border:3px solid lab(none none none)'>x",
    "shadow roots": "<div><template shadowrootmode=open><style>:host{all:initial}</style><slot></slot><p>x</template>x"
    * 40,
    "anchors that wait for each other": "<style>.a{anchor-name:--a;position:absolute;top:anchor(--b bottom)}"
    ".b{anchor-name:--b;position:absolute;top:anchor(--a bottom)}</style><div class=a>x</div><div class=b>y</div>",
    "print language": "<!doctype html><html lang=xx><plaintext><p>",
}


def hostile_pages() -> dict[str, str]:
    """All of them by name, places still to be filled in."""
    return SCRIPTS | REACHING_OUT | LEFT_BEHIND | MALFORMED | TOO_MUCH


def filled_in(page: str, *, port: int, secret: str, style: str) -> str:
    """The page with its places filled in."""
    return page.replace("{port}", str(port)).replace("{secret}", secret).replace("{style}", style)
