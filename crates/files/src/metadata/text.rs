//! Decoding of texts whose format does not specify the encoding.

/// The characters of Windows-1252 from 0x80 on, in place of the control characters of Latin-1.
const WINDOWS_1252: [char; 32] = [
    '€', '\u{81}', '‚', 'ƒ', '„', '…', '†', '‡', 'ˆ', '‰', 'Š', '‹', 'Œ', '\u{8d}', 'Ž', '\u{8f}', '\u{90}',
    '‘', '’', '“', '”', '•', '–', '—', '˜', '™', 'š', '›', 'œ', '\u{9d}', 'ž', 'Ÿ',
];

/// Decodes a text in UTF-8, or else in Windows-1252, which includes Latin-1.
pub(super) fn decoded(bytes: &[u8]) -> String {
    let character = |&byte: &u8| match byte {
        0x80..0xa0 => WINDOWS_1252[usize::from(byte - 0x80)],
        byte => char::from(byte),
    };
    match std::str::from_utf8(bytes) {
        Ok(text) => text.to_owned(),
        Err(_) => bytes.iter().map(character).collect(),
    }
}

/// Restores a text in UTF-8 that was decoded as Latin-1; `None` if it is not one.
pub(super) fn mended(text: &str) -> Option<String> {
    let bytes: Option<Vec<u8>> = text.chars().map(|character| u8::try_from(character).ok()).collect();
    String::from_utf8(bytes?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_encodings_are_read() {
        for text in ["plain", "Übung", "五"] {
            assert_eq!(decoded(text.as_bytes()), text);
        }
        assert_eq!(decoded(b"\xdcbung \x84x\x93 5 \x80"), "Übung „x“ 5 €");
        assert_eq!(mended("Ã\u{9c}bung").as_deref(), Some("Übung"));
        assert_eq!((mended("Übung"), mended("五")), (None, None));
    }
}
