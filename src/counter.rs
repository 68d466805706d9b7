//! Counts instructions of binaries by decoding them; joins `llvm`, `isa` and `resources`, which do not know each other.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Mutex, OnceLock};

use codeobj::TargetId;
use isa::Site;
use llvm::{Decoder, State, Toolchain};
use resources::binary::InstructionCounter;
use resources::sites::SiteCounts;

/// Opens LLVM when the first binary needs it, so that dump trees never pay for it.
pub struct LlvmCounter {
    path: Option<PathBuf>,
    decoder: OnceLock<Result<Toolchain, String>>,
    targets: Mutex<HashMap<(String, bool), Result<llvm::Target, String>>>,
}

/// Words that fill the space behind a body: `s_nop 0`, `s_code_end`, zero.
const PADDING: [u32; 3] = [0xbf80_0000, 0xbf9f_0000, 0];

impl LlvmCounter {
    /// `path` is that of `--llvm`.
    pub fn new(path: Option<PathBuf>) -> LlvmCounter {
        LlvmCounter { path, decoder: OnceLock::new(), targets: Mutex::default() }
    }

    fn decoder(&self) -> Result<&dyn Decoder, String> {
        let opened = self.decoder.get_or_init(|| {
            let defaults = llvm::Options::default();
            let path = self.path.clone().or(defaults.path.clone());
            llvm::open(&llvm::Options { path, cache: llvm::cache_folder(), ..defaults }).map_err(|e| {
                let text = e.to_string();
                let first = text.lines().next().unwrap_or_default().trim_end_matches(':');
                format!("cannot decode: {first} (apt install libllvm22, or --llvm PATH, or --metadata-only)")
            })
        });
        opened.as_ref().map(|toolchain| toolchain as &dyn Decoder).map_err(Clone::clone)
    }

    fn target(&self, target: &TargetId, wave_size: u64) -> Result<llvm::Target, String> {
        let wave64 = wave_size == 64 && target.generation().is_some_and(|g| g >= 10);
        let Ok(mut targets) = self.targets.lock() else { return Err("another thread failed".into()) };
        let made = targets.entry((target.short(), wave64)).or_insert_with(|| {
            llvm::Target::from_id(&target.short()).map(|t| t.with_wave64(wave64)).map_err(|e| e.to_string())
        });
        made.clone()
    }
}

impl InstructionCounter for LlvmCounter {
    fn count(&self, target: &TargetId, wave_size: u64, code: &[u8]) -> Result<SiteCounts, String> {
        let decoder = self.decoder()?;
        let listing = decoder
            .decode(&self.target(target, wave_size)?, without_padding(code))
            .map_err(|e| format!("cannot decode: {e}"))?;
        let mut sites = SiteCounts::default();
        let mut undecoded = 0u32;
        let mut first = None;
        for instruction in listing.instructions() {
            if instruction.state != State::Decoded {
                undecoded += 1;
                first.get_or_insert(instruction.offset);
                continue;
            }
            let text = listing.text(instruction);
            let (mnemonic, operands) = text.split_once([' ', '\t']).unwrap_or((text, ""));
            if let Some(site) = Site::of(mnemonic.as_bytes(), || operands.as_bytes()) {
                sites.add(site);
            }
        }
        match first {
            None => Ok(sites),
            Some(offset) => {
                let llvm = decoder.name_for(&self.target(target, wave_size)?).unwrap_or_else(|_| decoder.describe());
                Err(format!("{undecoded} words are no instructions to {llvm}, the first at entry+{offset:#x}"))
            }
        }
    }
}

/// The body without the filling behind it; what follows the last instruction is not code.
fn without_padding(code: &[u8]) -> &[u8] {
    let words = code.chunks_exact(4).map(|w| u32::from_le_bytes([w[0], w[1], w[2], w[3]]));
    let filling = words.rev().take_while(|word| PADDING.contains(word)).count();
    &code[..(code.len() / 4 - filling) * 4]
}
