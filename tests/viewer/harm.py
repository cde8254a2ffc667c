"""What an attack would change on a page of ours, seen in a real browser."""

from playwright.sync_api import Page

STATE = r"""() => {
    const main = document.getElementById('content'), inside = (selector) => [...main.querySelectorAll(selector)];
    const ours = 'iframe[sandbox=""][src^="/page?"]';
    return [
        window.hit,
        inside('script, iframe, frame, object, embed, base, meta, style, link, img, video, template, math')
            .concat(inside('[style], [popover]')).filter((each) => !each.matches(ours)).length,
        inside('*').flatMap((each) => each.getAttributeNames()).filter((name) => name.startsWith('on')).length,
        inside('a, form').filter((each) => !(each.href ?? each.action).startsWith(location.origin)).length,
        /[\u001b\u009b\u202a-\u202e\u2066-\u2069]/.test(document.body.innerText + document.title),
        document.documentElement.scrollWidth <= innerWidth,
    ];
}"""
"""What ran, what is there, where it leads, what deceives, whether the page fits."""


def unharmed(page: Page) -> None:
    """Nothing ran, nothing of it is more than text, and the page fits its window."""
    page.mouse.move(300, 300)
    assert page.evaluate(STATE) == [None, 0, 0, 0, False, True]
