def count_letter(word: str, letter: str) -> int:
    """Counts how often a letter occurs in a word."""
    return word.lower().count(letter.lower())
