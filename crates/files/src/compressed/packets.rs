//! Packets of a track, in order, with time stamps corrected for gaps.

use super::CompressedDecoder;
use crate::error::ReadError;
use std::io;
use symphonia::core::errors::Error as SymphoniaError;
use symphonia::core::formats::well_known::FORMAT_ID_MKV;
use symphonia::core::packet::Packet;

/// Limit on consecutive errors of a container; each error may be one damaged byte.
const MAX_ERRORS: usize = 1 << 16;

/// Limit on the packets of padding after the declared end; more packets are another recording.
const MAX_PADDING: usize = 4;

impl CompressedDecoder {
    /// Returns the next packet of the track, or `None` at its end.
    pub(super) fn take_packet(&mut self) -> Result<Option<Packet>, ReadError> {
        // Packets after the declared end: padding if there are few of them, another recording otherwise.
        let end = self.end.unwrap_or(i64::MAX);
        let mut errors = 0;
        loop {
            if self.ahead.is_empty() && std::mem::take(&mut self.is_reset) {
                self.switch_recording()?;
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
                    // The Matroska demuxer expects an element after the last one; truncation is detected on opening.
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
                // The demuxer may resynchronise after the damage; the times of the following packets then show the gap.
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

    /// Shifts the packets of the page after a hole, so that they end with the page; returns false if there is no hole.
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

    /// Delays a packet by the gaps that the demuxer omits.
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
