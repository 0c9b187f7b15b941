"""Check digits of payment cards, national numbers and insurance numbers. The input is digits, or text of a shape that
was checked before."""

_DOUBLED = (0, 2, 4, 6, 8, 1, 3, 5, 7, 9)
_ITALIAN_DIGITS = (1, 0, 5, 7, 9, 13, 15, 17, 19, 21)
_ITALIAN_REST = (2, 4, 18, 20, 11, 3, 6, 8, 12, 14, 16, 10, 22, 25, 24, 23)
_ITALIAN_VALUES = (*_ITALIAN_DIGITS, *_ITALIAN_DIGITS, *_ITALIAN_REST)
_ITALIAN_ODD = dict(zip("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ", _ITALIAN_VALUES, strict=True))
_DNI_LETTERS = "TRWAGMYFPDXBNJZSQVHLCKE"


def luhn(digits: str) -> bool:
    total = sum(map(int, digits[-1::-2])) + sum(_DOUBLED[int(digit)] for digit in digits[-2::-2])
    return total % 10 == 0


def _plausible_day(month: str, day: str) -> bool:
    return 1 <= int(month) <= 12 and 1 <= int(day) <= 31


def _weighted(digits: str, weights: tuple[int, ...]) -> int:
    return sum(int(digit) * weight for digit, weight in zip(digits, weights, strict=False))


def saudi_id(digits: str) -> bool:
    return digits[0] in "12" and luhn(digits)


def nhs_number(digits: str) -> bool:
    check = 11 - _weighted(digits, (10, 9, 8, 7, 6, 5, 4, 3, 2)) % 11
    return int(digits) > 0 and check % 11 == int(digits[9])


def kuwait_civil_id(digits: str) -> bool:
    check = 11 - _weighted(digits, (2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2)) % 11
    return digits[0] in "123" and _plausible_day(digits[3:5], digits[5:7]) and check == int(digits[11])


def rwanda_id(digits: str) -> bool:
    return digits[0] in "123" and digits[1:3] in ("19", "20") and digits[5] in "78"


def emirates_id(digits: str) -> bool:
    return digits[:3] == "784" and digits[3:5] in ("19", "20")


def german_tax_id(digits: str) -> bool:
    """ISO 7064 mod 11,10; of the first ten digits exactly one appears twice or three times."""
    counts = sorted((digits[:10].count(digit) for digit in set(digits[:10])), reverse=True)
    if digits[0] == "0" or counts[0] not in (2, 3) or counts[1] != 1:
        return False
    product = 10
    for digit in digits[:10]:
        product = ((int(digit) + product) % 10 or 10) * 2 % 11
    return (11 - product) % 10 == int(digits[10])


def swedish_number(digits: str) -> bool:
    return _plausible_day(digits[-8:-6], digits[-6:-4]) and luhn(digits[-10:])


def polish_pesel(digits: str) -> bool:
    month = int(digits[2:4]) % 20
    check = -_weighted(digits, (1, 3, 7, 9, 1, 3, 7, 9, 1, 3)) % 10
    return 1 <= month <= 12 and 1 <= int(digits[4:6]) <= 31 and check == int(digits[10])


def belgian_number(digits: str) -> bool:
    return any(97 - int(prefix + digits[:9]) % 97 == int(digits[9:]) for prefix in ("", "2"))


def french_nir(text: str) -> bool:
    """13 characters and a two-digit key; the Corsican departments 2A and 2B count as 19 and 18."""
    body = text[:13].replace("2A", "19").replace("2B", "18")
    return body.isdigit() and 97 - int(body) % 97 == int(text[13:])


def spanish_id(text: str) -> bool:
    """DNI (eight digits, letter) and NIE (X, Y or Z in place of the first digit)."""
    number = str("XYZ".index(text[0])) + text[1:-1] if text[0] in "XYZ" else text[:-1]
    return _DNI_LETTERS[int(number) % 23] == text[-1]


def italian_code(text: str) -> bool:
    odd = sum(_ITALIAN_ODD[char] for char in text[0:15:2])
    even = sum(int(char) if char.isdigit() else ord(char) - 65 for char in text[1:15:2])
    return chr(65 + (odd + even) % 26) == text[15]


def german_insurance_number(text: str) -> bool:
    """KVNR: the letter counts as its two-digit place in the alphabet; weights 1 and 2, digit sums."""
    digits = f"{ord(text[0]) - 64:02d}{text[1:9]}"
    total = sum(_DOUBLED[int(d)] if place % 2 else int(d) for place, d in enumerate(digits))
    return total % 10 == int(text[9])
