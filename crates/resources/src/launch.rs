//! What a launch of a kernel is bound to: lanes of a wave, sizes of a work-group, where its waves may run. Occupancy
//! needs it beside the figures of the table.
//!
//! Each member is there where the input records it. AMDGPUUsage, "Code Object Metadata" and "Kernel Descriptor".

use codeobj::code_object::Kernel;
use codeobj::descriptor::Family;
use codeobj::metadata::{Count, KernelMetadata};
use codeobj::{Descriptor, TargetId};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::Value;

/// What a launch of a kernel is bound to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Launch {
    /// VGPRs that the descriptor gives a wave, AGPRs included where they share the file. Compilers raise it above what
    /// the kernel uses, to keep more waves off (`amdgpu-waves-per-eu`).
    pub allocated_vgprs: Option<u32>,
    /// `.max_flat_workgroup_size`: work-items of a work-group, at most.
    pub max_flat_workgroup_size: Option<u32>,
    /// `.reqd_workgroup_size`: work-items of every work-group, in x, y, z.
    pub reqd_workgroup_size: Option<[u32; 3]>,
    /// Lanes of a wave.
    pub wavefront_size: Option<u32>,
    /// Whether a work-group may use both compute units of a work-group processor (gfx10 to gfx12).
    pub workgroup_processor_mode: Option<bool>,
}

impl Launch {
    /// What the metadata says; allocation and mode are matters of the descriptor.
    pub fn from_metadata(metadata: &KernelMetadata) -> Launch {
        let small = |count: &Count| count.value().and_then(|value| u32::try_from(value).ok());
        let required = |size: [u64; 3]| {
            let [x, y, z] = size.map(|n| u32::try_from(n).ok());
            Some([x?, y?, z?])
        };
        Launch {
            allocated_vgprs: None,
            max_flat_workgroup_size: small(&metadata.max_flat_workgroup_size),
            reqd_workgroup_size: metadata.reqd_workgroup_size.and_then(required),
            wavefront_size: small(&metadata.wavefront_size),
            workgroup_processor_mode: None,
        }
    }

    /// What metadata and descriptor of a code object say.
    pub fn of_kernel(kernel: &Kernel, target: &TargetId) -> Launch {
        let mut launch = Launch::from_metadata(&kernel.metadata);
        let Some(family) = target.processor.as_deref().and_then(Family::of) else { return launch };
        let Ok(descriptor) = kernel.descriptor.as_ref().map(|placed| placed.descriptor) else { return launch };
        let wave32 = family.has_wave32() && descriptor.wavefront_size32();
        launch.allocated_vgprs = Some(descriptor.allocated_vgprs(family, wave32));
        if family.has_wave32() {
            launch.wavefront_size.get_or_insert(if wave32 { 32 } else { 64 });
            launch.workgroup_processor_mode =
                Descriptor::field(family, "workgroup_processor_mode").map(|field| field.get(descriptor.bytes()) == 1);
        }
        launch
    }

    /// Reads a snapshot's `launch`; the error says what is wrong with it.
    pub fn from_json(value: &Value) -> Result<Launch, String> {
        let object = value.as_object().ok_or("`launch` must be an object")?;
        let small = |value: &Value| value.as_u64().and_then(|value| u32::try_from(value).ok());
        let number = |name: &str| match object.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => {
                small(value).map(Some).ok_or_else(|| format!("`launch.{name}` is {value}, expected a count"))
            }
        };
        let required = |value: &Value| {
            let [x, y, z] = value.as_array()?.as_slice() else { return None };
            Some([small(x)?, small(y)?, small(z)?])
        };
        Ok(Launch {
            allocated_vgprs: number("allocated_vgprs")?,
            max_flat_workgroup_size: number("max_flat_workgroup_size")?,
            reqd_workgroup_size: match object.get("reqd_workgroup_size") {
                None | Some(Value::Null) => None,
                Some(size) => Some(required(size).ok_or("`launch.reqd_workgroup_size` must be three counts")?),
            },
            wavefront_size: number("wavefront_size")?,
            workgroup_processor_mode: match object.get("workgroup_processor_mode") {
                None | Some(Value::Null) => None,
                Some(Value::Bool(mode)) => Some(*mode),
                Some(_) => return Err("`launch.workgroup_processor_mode` must be true or false".into()),
            },
        })
    }
}

/// As a snapshot records it, keys sorted; what is not recorded is left out.
impl Serialize for Launch {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        if let Some(vgprs) = self.allocated_vgprs {
            map.serialize_entry("allocated_vgprs", &vgprs)?;
        }
        if let Some(size) = self.max_flat_workgroup_size {
            map.serialize_entry("max_flat_workgroup_size", &size)?;
        }
        if let Some(size) = self.reqd_workgroup_size {
            map.serialize_entry("reqd_workgroup_size", &size)?;
        }
        if let Some(size) = self.wavefront_size {
            map.serialize_entry("wavefront_size", &size)?;
        }
        if let Some(mode) = self.workgroup_processor_mode {
            map.serialize_entry("workgroup_processor_mode", &mode)?;
        }
        map.end()
    }
}
