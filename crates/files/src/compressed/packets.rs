//! The packets of a track in their order and at their times, as far as the container has them.

use super::CompressedDecoder;
use crate::error::ReadError;
use std::io;
use symphonia::core::errors::Error as SymphoniaError;
use symphonia::core::formats::well_known::FORMAT_ID_MKV;
use symphonia::core::packet::Packet;

/// Errors in a row after which a container is given up, of which each may be a byte of damage.
const MAX_ERRORS: usize = 1 << 16;

/// Packets behind the announced end that may be padding; more of them are another recording.
const MAX_PADDING: usize = 4;

impl CompressedDecoder {
    /// The next packet of the track; none at the end.
    pub(super) fn take_packet(&mut self) -> Result<Option<Packet>, ReadError> {
        // Packets behind the announced end: padding if there are few of them, another recording otherwise.
        let end = self.end.unwrap_or(i64::MAX);
        let mut errors = 0;
        loop {
            if self.ahead.is_empty() && std::mem::take(&mut self.is_reset) {
                self.go_on()?;
                self.length = None;
            }
            if self.hole.is_none()
                && let Some(packet) = self.ahead.front()
                && (self.chained || packet.pts.get() < end)
            {
                let packet = self.ahead.pop_front();
                return Ok(packet.map(|packet| self.in_time(packet)));
            }
            match self.reader.next_packet() {
                Ok(Some(mut packet)) if packet.track_id == self.track => {
                    if packet.pts.get() >= end {
                        if self.ahead.len() >= MAX_PADDING && !self.chained {
                            self.chained = true;
                            self.length = None;
                            self.ahead.iter_mut().for_each(|packet| packet.trim_end = 0_u64.into());
                        }
                        if self.chained {
                            packet.trim_end = 0_u64.into();
                        }
                    }
                    let time = packet.pts.get();
                    if self.hole.is_some_and(|(_, end)| time >= end) {
                        self.close_hole();
                    }
                    if self.hole.is_none() {
                        self.hole = self.holes.take(self.track, time).map(|end| (time, end));
                    }
                    self.ahead.push_back(packet);
                }
                Ok(Some(_)) => {}
                Ok(None) if self.close_hole() => {}
                Ok(None) => return Ok(None),
                Err(SymphoniaError::IoError(error)) if error.kind() == io::ErrorKind::UnexpectedEof => {
                    // That of Matroska looks for a further element behind the last: where it ends is known before.
                    self.losses.ends_early |= !self.is(FORMAT_ID_MKV);
                    if !self.close_hole() {
                        return Ok(None);
                    }
                }
                Err(SymphoniaError::IoError(error)) => return Err(ReadError::Io(error)),
                // Another Ogg recording, whose length is unknown before its end.
                Err(SymphoniaError::ResetRequired) => {
                    self.close_hole();
                    self.is_reset = true;
                }
                // It goes on behind the damage if it finds its way, and the times of the packets there say what is missing.
                Err(SymphoniaError::DecodeError(_)) if self.is(FORMAT_ID_MKV) && self.channels > 0 => {
                    self.losses.damaged_packets += u64::from(errors == 0);
                    errors += 1;
                    if errors > MAX_ERRORS {
                        self.losses.ends_early = true;
                        return Ok(None);
                    }
                }
                Err(error) => return Err(self.damaged(&error)),
            }
        }
    }

    /// Puts the packets of the page behind a hole at its end; false if there is no hole.
    fn close_hole(&mut self) -> bool {
        let Some((start, end)) = self.hole.take() else { return false };
        let behind = |packet: &&mut Packet| (start..end).contains(&packet.pts.get());
        let found: u64 = self.ahead.iter_mut().filter(behind).map(|packet| packet.block_dur().get()).sum();
        let missing = end.abs_diff(start).saturating_sub(found);
        for packet in self.ahead.iter_mut().filter(behind) {
            packet.pts = packet.pts.saturating_add(missing.into());
        }
        true
    }

    /// A packet behind the gaps that the demuxer leaves out.
    fn in_time(&mut self, mut packet: Packet) -> Packet {
        let time = packet.pts.get();
        while let Some((_, units)) =
            self.gaps.front().filter(|(at, _)| i64::try_from(*at).is_ok_and(|at| at <= time))
        {
            self.passed_gaps = self.passed_gaps.saturating_add(*units);
            self.gaps.pop_front();
        }
        packet.pts = packet.pts.saturating_add(self.passed_gaps.into());
        packet
    }
}
