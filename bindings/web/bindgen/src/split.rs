//! Cuts constant data out of a WebAssembly module, for a page to load when it needs them.

/// Name of the custom section with the address and length of what was cut out, two 32-bit numbers, little-endian.
const SECTION: &str = "alphamf-causal";

/// Ids of sections.
const CUSTOM: u8 = 0;
const DATA: u8 = 11;

/// The module with zeros in place of `part`, which occurs once in its data, and a custom section that names the place.
pub fn without(mut module: Vec<u8>, part: &[u8]) -> Result<Vec<u8>, String> {
    let mut found = Vec::new();
    let mut reader = Reader { bytes: &module, at: 8 };
    while reader.at < module.len() {
        let (id, size) = (reader.byte()?, reader.unsigned()?);
        let end = reader.at + size;
        if id == DATA {
            for _ in 0..reader.unsigned()? {
                let address = reader.address()?;
                let length = reader.unsigned()?;
                let data = module.get(reader.at..reader.at + length).ok_or(ENDS)?;
                let places = places(data, part);
                found.extend(
                    places
                        .into_iter()
                        .map(|place| (address.map(|address| address + place), reader.at + place)),
                );
                reader.at += length;
            }
        }
        reader.at = end;
    }
    let [(Some(address), at)] = found[..] else {
        return Err(format!(
            "the part occurs {} times in the data of the module: expected once",
            found.len()
        ));
    };
    module[at..at + part.len()].fill(0);
    let number = |value: usize| u32::try_from(value).map(u32::to_le_bytes).map_err(|error| error.to_string());
    let content =
        [&[SECTION.len() as u8][..], SECTION.as_bytes(), &number(address)?, &number(part.len())?].concat();
    module.extend([CUSTOM, content.len() as u8]);
    module.extend(content);
    Ok(module)
}

const ENDS: &str = "the module ends early";

/// Where `part` begins in `data`.
fn places(data: &[u8], part: &[u8]) -> Vec<usize> {
    let last = data.len().checked_sub(part.len());
    let Some(last) = last.filter(|_| !part.is_empty()) else { return Vec::new() };
    (0..=last).filter(|&place| data[place] == part[0] && data[place..place + part.len()] == *part).collect()
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    fn byte(&mut self) -> Result<u8, String> {
        let byte = *self.bytes.get(self.at).ok_or(ENDS)?;
        self.at += 1;
        Ok(byte)
    }

    /// A number in LEB128.
    fn unsigned(&mut self) -> Result<usize, String> {
        let mut value = 0;
        for shift in (0..35).step_by(7) {
            let byte = self.byte()?;
            value |= usize::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err("a number of the module is too long".to_owned())
    }

    /// The address of a segment of data; none if that is passive.
    fn address(&mut self) -> Result<Option<usize>, String> {
        const I32_CONST: u8 = 0x41;
        const END: u8 = 0x0b;
        match self.unsigned()? {
            1 => Ok(None),
            0 => {
                let constant = self.byte()?;
                // Signed, but linkers place data in the lower half of the memory.
                let address = self.unsigned()?;
                if (constant, self.byte()?) != (I32_CONST, END) {
                    return Err("the address of a segment is no constant".to_owned());
                }
                Ok(Some(address))
            }
            kind => Err(format!("segment of kind {kind}: expected 0 or 1")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A module with one segment at address 1024 (two bytes in LEB128).
    fn module(data: &[u8]) -> Vec<u8> {
        let segment = [&[1, 0, 0x41, 0x80, 0x08, 0x0b, data.len() as u8][..], data].concat();
        [&b"\0asm\x01\0\0\0"[..], &[DATA, segment.len() as u8], &segment].concat()
    }

    #[test]
    fn the_part_becomes_zeros_and_its_place_is_named() {
        let cut = without(module(b"abcpart.def"), b"part.").unwrap();
        let section =
            [&[CUSTOM, 23, 14][..], b"alphamf-causal", &1027_u32.to_le_bytes(), &5_u32.to_le_bytes()];
        assert_eq!(cut, [module(b"abc\0\0\0\0\0def"), section.concat()].concat());
    }

    #[test]
    fn a_part_that_is_absent_or_occurs_twice_is_an_error() {
        assert!(without(module(b"abc"), b"part").unwrap_err().contains("0 times"));
        assert!(without(module(b"part part"), b"part").unwrap_err().contains("2 times"));
    }

    #[test]
    fn modules_that_end_early_are_errors() {
        let whole = module(b"abcpart");
        for length in 9..whole.len() {
            assert!(without(whole[..length].to_vec(), b"part").is_err(), "{length}");
        }
    }
}
