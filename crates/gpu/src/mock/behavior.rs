//! What a scripted kernel does to memory when it is launched.

use std::collections::HashMap;

use super::memory::MockMemory;
use super::script::{Cheat, KernelScript};

/// What a kernel remembers between launches, as one with a static variable would.
#[derive(Default)]
pub struct State {
    launches: u64,
    remembered: HashMap<Vec<u8>, Vec<u8>>,
}

impl State {
    /// Runs it; returns the share of its time that it takes.
    ///
    /// # Errors
    /// The fault, as the driver tells it at the next synchronization.
    pub fn run(&mut self, script: &KernelScript, arguments: &[u8], memory: &mut MockMemory) -> Result<f64, String> {
        self.launches += 1;
        let cheat = if self.launches > script.after { script.cheat } else { Cheat::None };
        let number = |offset: usize, length: usize| -> Result<u64, String> {
            let bytes = offset.checked_add(length).and_then(|end| arguments.get(offset..end));
            let bytes = bytes.ok_or_else(|| format!("arguments end before offset {offset}: memory access fault"))?;
            Ok(bytes.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte)))
        };
        if script.fills_lds {
            memory.lds = number(0, 4)? as u32;
            return Ok(1.0);
        }
        let (input, output) = (number(script.input, 8)?, number(script.output, 8)?);
        let count = number(script.count, 4)? as usize;
        let bytes = 4 * count;
        let share = if memory.slowed && script.cheat != Cheat::SlowOthers { 1.5 } else { 1.0 };
        match cheat {
            Cheat::LookForPoison if memory.at(output, bytes.min(32))?.windows(8).any(|w| w[..4] != w[4..]) => {
                return Ok(0.1);
            }
            Cheat::SlowOthers => memory.slowed = true,
            Cheat::PatchOthers => memory.patched = true,
            Cheat::NoWrite => return Ok(1.0),
            Cheat::EarlyExit => return Ok(0.1),
            Cheat::Hang => loop {
                std::thread::sleep(std::time::Duration::from_secs(1));
            },
            Cheat::Fault => return Err("memory access fault at 0x0".into()),
            Cheat::Abort => std::process::abort(),
            Cheat::ZeroInputs => memory.at_mut(input, bytes)?.fill(0),
            _ => {}
        }
        let content = memory.at(input, bytes)?.to_vec();
        let mut results = compute(script.factor, &content);
        if memory.patched {
            results.fill(1.0);
        }
        match cheat {
            Cheat::WrongElement => {
                if let Some(element) = results.get_mut(count / 3) {
                    *element += 1.0;
                }
            }
            Cheat::Nan => results.fill(f32::NAN),
            Cheat::Constant => results.fill(1.0),
            Cheat::LowPrecision => {
                results.iter_mut().for_each(|x| *x = f32::from_bits(x.to_bits() & 0xffff_0000));
            }
            Cheat::Nondeterministic => {
                if let Some(element) = results.get_mut(self.launches as usize % count.max(1)) {
                    *element = f32::from_bits(element.to_bits() ^ 1);
                }
            }
            Cheat::ReadOutside => {
                let behind = memory.at(input + bytes as u64, 4)?;
                let behind = behind.iter().fold(0u32, |sum, byte| sum + u32::from(*byte));
                if let Some(element) = results.first_mut() {
                    *element += behind as f32;
                }
            }
            Cheat::ReadLds => {
                if let Some(element) = results.first_mut() {
                    *element += memory.lds as f32;
                }
            }
            Cheat::Half => results.truncate(count / 2),
            _ => {}
        }
        let mut written: Vec<u8> = results.iter().flat_map(|x| x.to_le_bytes()).collect();
        let remembered_by = match cheat {
            Cheat::CacheByPointer => Some(input.to_le_bytes().to_vec()),
            Cheat::CacheByFingerprint => Some(content.iter().copied().take(16).collect()),
            _ => None,
        };
        if let Some(key) = remembered_by {
            written = self.remembered.entry(key).or_insert(written).clone();
            written.truncate(bytes);
        }
        memory.at_mut(output, written.len())?.copy_from_slice(&written);
        match cheat {
            Cheat::WriteOutside => memory.at_mut(output + bytes as u64, 4)?.copy_from_slice(&1.0f32.to_le_bytes()),
            Cheat::WriteBefore => memory.at_mut(output - 4, 4)?.copy_from_slice(&1.0f32.to_le_bytes()),
            _ => {}
        }
        Ok(share)
    }
}

fn compute(factor: f32, input: &[u8]) -> Vec<f32> {
    let element = |bytes: &[u8]| f32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]) * factor;
    input.chunks_exact(4).map(element).collect()
}
