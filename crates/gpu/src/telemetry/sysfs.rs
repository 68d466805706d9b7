//! AMD's devices as the Linux driver shows them: `/sys/bus/pci/devices/ADDRESS/hwmon` (clocks, temperature, power; kernel
//! documentation, "GPU Power/Thermal Controls and Monitoring") and `/sys/class/kfd/kfd/topology` (which target, which caches;
//! libhsakmt's `topology.c` reads the same files).

use std::fs;
use std::path::{Path, PathBuf};

use crate::Telemetry;

/// The state of the device at that PCI address.
pub fn read(bus_id: &str) -> Telemetry {
    read_below(Path::new("/sys"), bus_id)
}

/// `gfx942` of the device at that PCI address; features are not told.
pub fn target(bus_id: &str) -> Option<String> {
    target_below(Path::new("/sys"), bus_id)
}

/// Bytes of the largest cache of the device at that PCI address: L2, or what stands behind it.
pub fn largest_cache_bytes(bus_id: &str) -> Option<u64> {
    largest_cache_below(Path::new("/sys"), bus_id)
}

fn read_below(sys: &Path, bus_id: &str) -> Telemetry {
    let monitors = sys.join("bus/pci/devices").join(bus_id.to_ascii_lowercase()).join("hwmon");
    let Some(monitor) = fs::read_dir(monitors).ok().and_then(|mut entries| entries.next()?.ok()) else {
        return Telemetry::default();
    };
    let number = |name: &str| fs::read_to_string(monitor.path().join(name)).ok()?.trim().parse::<f64>().ok();
    Telemetry {
        clock_hz: number("freq1_input"),
        memory_clock_hz: number("freq2_input"),
        temperature_celsius: number("temp2_input").or_else(|| number("temp1_input")).map(|milli| milli / 1e3),
        power_watts: number("power1_average").or_else(|| number("power1_input")).map(|micro| micro / 1e6),
        throttling: Vec::new(),
        other_processes: Vec::new(),
    }
}

fn target_below(sys: &Path, bus_id: &str) -> Option<String> {
    let (_, properties) = node_below(sys, bus_id)?;
    processor(properties.number("gfx_target_version")?)
}

fn largest_cache_below(sys: &Path, bus_id: &str) -> Option<u64> {
    let (node, _) = node_below(sys, bus_id)?;
    let caches = fs::read_dir(node.join("caches")).ok()?.flatten();
    let kibibytes = caches.filter_map(|cache| Properties::read(&cache.path())?.number("size"));
    kibibytes.max()?.checked_mul(1024)
}

/// The folder of the device at that PCI address, and its properties.
fn node_below(sys: &Path, bus_id: &str) -> Option<(PathBuf, Properties)> {
    let location = location(bus_id)?;
    let nodes = fs::read_dir(sys.join("class/kfd/kfd/topology/nodes")).ok()?;
    let mut paths: Vec<PathBuf> = nodes.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    paths.into_iter().find_map(|path| {
        let properties = Properties::read(&path)?;
        let here = (properties.number("domain").unwrap_or(0), properties.number("location_id")?);
        // A processor has no location; its caches are not the device's.
        let is_device = properties.number("gfx_target_version").is_some_and(|version| version > 0);
        (here == location && is_device).then_some((path, properties))
    })
}

/// A file of lines `name number`.
struct Properties(String);

impl Properties {
    fn read(folder: &Path) -> Option<Properties> {
        fs::read_to_string(folder.join("properties")).ok().map(Properties)
    }

    fn number(&self, name: &str) -> Option<u64> {
        self.0.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.trim().parse().ok())
    }
}

/// Domain and `bus << 8 | device << 3 | function` of `0000:c1:00.0`.
fn location(bus_id: &str) -> Option<(u64, u64)> {
    let hex = |text: &str| u64::from_str_radix(text, 16).ok();
    let mut parts = bus_id.split([':', '.']);
    let (domain, bus, device) = (hex(parts.next()?)?, hex(parts.next()?)?, hex(parts.next()?)?);
    let function = hex(parts.next().unwrap_or("0"))?;
    Some((domain, bus << 8 | device << 3 | function))
}

/// 90402 is gfx942: major · 10000 + minor · 100 + stepping, the last two as hexadecimal digits in the name.
fn processor(version: u64) -> Option<String> {
    (version > 0).then(|| format!("gfx{}{:x}{:x}", version / 10000, version / 100 % 100, version % 100))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_is_found_by_its_address() {
        let sys = tempfile::tempdir().expect("a directory");
        let nodes = sys.path().join("class/kfd/kfd/topology/nodes");
        let node = |name: &str, text: &str| {
            fs::create_dir_all(nodes.join(name)).expect("a node");
            fs::write(nodes.join(name).join("properties"), text).expect("its properties");
        };
        node("0", "cpu_cores_count 8\nlocation_id 0\ngfx_target_version 0\n");
        node("1", "location_id 49408\ndomain 0\ngfx_target_version 90402\n");
        node("2", "location_id 49408\ndomain 1\ngfx_target_version 90010\n");
        assert_eq!(target_below(sys.path(), "0000:c1:00.0").as_deref(), Some("gfx942"));
        assert_eq!(target_below(sys.path(), "0001:C1:00.0").as_deref(), Some("gfx90a"));
        assert_eq!(target_below(sys.path(), "0000:c2:00.0"), None);
        assert_eq!(target_below(sys.path(), "nonsense"), None);
    }

    #[test]
    fn the_largest_cache_is_the_device_s_own() {
        let sys = tempfile::tempdir().expect("a directory");
        let nodes = sys.path().join("class/kfd/kfd/topology/nodes");
        let write = |path: &str, text: &str| {
            fs::create_dir_all(nodes.join(path)).expect("a folder");
            fs::write(nodes.join(path).join("properties"), text).expect("its properties");
        };
        write("0", "location_id 0\ngfx_target_version 0\n");
        write("0/caches/0", "level 3\nsize 1048576\n");
        // An MI300X, but for most of its L1: 16 KiB, 4 MiB, 256 MiB.
        write("1", "location_id 49408\ndomain 0\ngfx_target_version 90402\n");
        write("1/caches/0", "processor_id_low 2147487744\nlevel 1\nsize 16\ncache_line_size 128\n");
        write("1/caches/1", "processor_id_low 2147487744\nlevel 3\nsize 262144\ncache_line_size 64\n");
        write("1/caches/2", "processor_id_low 2147487744\nlevel 2\nsize 4096\ncache_line_size 128\n");
        write("2", "location_id 49664\ndomain 0\ngfx_target_version 90402\n");
        assert_eq!(largest_cache_below(sys.path(), "0000:c1:00.0"), Some(256 << 20));
        assert_eq!(largest_cache_below(sys.path(), "0000:c2:00.0"), None, "tells no caches");
        assert_eq!(largest_cache_below(sys.path(), "0000:00:00.0"), None, "a processor");
    }

    #[test]
    fn the_state_is_read_from_the_monitor() {
        let sys = tempfile::tempdir().expect("a directory");
        let monitor = sys.path().join("bus/pci/devices/0000:c1:00.0/hwmon/hwmon3");
        fs::create_dir_all(&monitor).expect("a monitor");
        for (name, text) in
            [("freq1_input", "2100000000\n"), ("temp1_input", "41000\n"), ("power1_average", "250000000\n")]
        {
            fs::write(monitor.join(name), text).expect("a value");
        }
        let state = read_below(sys.path(), "0000:C1:00.0");
        assert_eq!(state.clock_hz, Some(2.1e9));
        assert_eq!(state.temperature_celsius, Some(41.0));
        assert_eq!(state.power_watts, Some(250.0));
        assert_eq!(state.memory_clock_hz, None);
    }
}
