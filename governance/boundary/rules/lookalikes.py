"""Letters that look like Latin ones (Unicode: confusables) and accents that hide a letter, brought to plain Latin."""

import re
import unicodedata
from typing import Final

# Latin letter: the letters of other scripts, and the rarer Latin ones, that are printed like it. NFKC has already
# replaced full-width, mathematical, circled and superscript forms.
_TABLE: Final = """
A: А Α Ꭺ ᗅ ꓮ 𐊠
a: а α ɑ ⍺ ᴀ
B: В Β Ᏼ ᗷ ꓐ ʙ
b: Ь Ꮟ ᑲ ƅ ƀ
C: С Ϲ Ꮯ ꓚ
c: с ϲ ᴄ ƈ ꮯ
D: Ꭰ ᗞ ꓓ ᴅ
d: ԁ ɗ ɖ ꓒ Ꮷ
E: Е Ε Ꭼ ⴹ ꓰ ᴇ
e: е є ҽ ɛ ε ℮ ꬲ
F: Ϝ ꓝ ꜰ
f: ƒ ꬵ ẝ
G: Ԍ Ꮐ Ᏻ ꓖ ɢ
g: ɡ ց ᶃ ɠ
H: Н Η Ꮋ ᕼ ꓧ ʜ
h: һ հ Ꮒ ɦ
I: І Ι Ӏ ꓲ Ⲓ
i: і ι ı ɩ ɪ ӏ ⍳ Ꭵ
J: Ј Ϳ Ꭻ ꓙ ᴊ
j: ј ϳ ʝ
K: К Κ Ꮶ ꓗ ᴋ
k: к κ ƙ қ
L: Ꮮ ᒪ ꓡ ʟ
l: ⅼ ƚ ł ɫ ɭ
M: М Μ Ϻ Ꮇ ᗰ ꓟ ᴍ
m: м ɱ
N: Ν Ⲛ ꓠ ɴ
n: ո п ŋ ɲ ռ
O: О Ο Օ ꓳ ⵔ ᴏ
o: о ο օ σ ໐ ০ ଠ ഠ
P: Р Ρ Ꮲ ᑭ ꓑ ᴘ
p: р ρ ƥ ⍴
Q: Ԛ ⵕ
q: ԛ գ զ
R: Ꭱ Ꮢ ᖇ ꓣ ʀ
r: г ꭇ ɾ ɼ
S: Ѕ Տ Ꮥ Ꮪ ꓢ ꜱ
s: ѕ ʂ
T: Т Τ Ꭲ ꓔ ᴛ
t: т τ ƭ ŧ
U: Ս ꓴ ᑌ
u: υ ս ᴜ ʋ
V: Ѵ Ꮩ ᐯ ꓦ
v: ѵ ν ᴠ
W: Ԝ Ꮃ Ꮤ ꓪ
w: ԝ ա ѡ ᴡ ɯ
X: Х Χ ꓫ Ⅹ
x: х χ ᕁ
Y: Υ Ү Ұ ꓬ Ꭹ
y: у ү γ ʏ ყ
Z: Ζ Ꮓ ꓜ ᴢ
z: ʐ ż
@: ＠ ﹫
.: 。 ․ ۔ ·
"""


def _letters() -> dict[int, str]:
    rows = (line.partition(":") for line in _TABLE.strip().splitlines())
    pairs = ((letter, latin) for latin, _, letters in rows for letter in letters.split())
    return {ord(letter): latin for letter, latin in pairs if len(letter) == 1}


LATIN: Final = _letters()
_WORD = re.compile(r"[^\W\d_]+")


def without_disguise(text: str) -> str:
    """The normalized text without combining marks, with each word in Latin letters that can be read as one."""
    if text.isascii():
        return text
    plain = "".join(char for char in unicodedata.normalize("NFKD", text) if not unicodedata.combining(char))
    return _WORD.sub(_as_latin, plain).translate(_PUNCTUATION)


_PUNCTUATION: Final = {code: latin for code, latin in LATIN.items() if not latin.isalpha()}


def _as_latin(match: re.Match[str]) -> str:
    # Only whole words: half of a Russian word in Latin letters would be nonsense, and nonsense can look like a code.
    latin = match[0].translate(LATIN)
    return latin if latin.isascii() else match[0]
