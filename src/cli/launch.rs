//! The options of a launch, which several commands take.

use crate::sim::launch::{CommandArg, parse_command_arg, parse_reference};

/// What a launch has beside its grid and its blocks.
#[derive(clap::Args)]
pub struct LaunchOptions {
    /// Blocks of a cluster, whatever the kernel says: X[,Y[,Z]]
    #[arg(long, value_parser = triple, requires = "grid")]
    pub cluster: Option<[u32; 3]>,
    /// Bytes of dynamic shared memory
    #[arg(long, default_value_t = 0, requires = "grid")]
    pub smem: u32,
    /// Give up after so many instructions of all warps (of all threads with --engine ptx)
    #[arg(long, requires = "grid")]
    pub steps: Option<u64>,
    /// Bytes of stack for `alloca` and recursion, if the kernel states no larger frame
    #[arg(long, requires = "grid")]
    pub stack: Option<u32>,
    /// Arguments in order: u32:5 f32:2.5 in:PATH out:PATH:BYTES inout:PATH[:OUT] …
    #[arg(long = "arg", allow_hyphen_values = true, requires = "grid")]
    args: Vec<String>,
    /// The texture that a .texref names: NAME:PATH,TYPE,SHAPE,… as in --arg texture:…
    #[arg(long = "texture", requires = "grid")]
    textures: Vec<String>,
    /// The surface that a .surfref names: NAME:PATH,TYPE,SHAPE,… as in --arg surface:…
    #[arg(long = "surface", requires = "grid")]
    surfaces: Vec<String>,
    /// The sampler that a .samplerref names: NAME:ITEM,… as in --arg sampler:…
    #[arg(long = "sampler", requires = "grid")]
    samplers: Vec<String>,
}

impl LaunchOptions {
    /// The arguments in order, then what references name.
    pub fn arguments(&self) -> Result<Vec<CommandArg>, String> {
        let mut args: Vec<CommandArg> = self.args.iter().map(|a| parse_command_arg(a)).collect::<Result<_, _>>()?;
        for (kind, list) in [("texture", &self.textures), ("surface", &self.surfaces), ("sampler", &self.samplers)] {
            let bound = list.iter().map(|text| parse_reference(kind, text));
            args.extend(bound.collect::<Result<Vec<_>, _>>()?);
        }
        Ok(args)
    }
}

/// Parses `X[,Y[,Z]]`; missing components are 1.
pub fn triple(text: &str) -> Result<[u32; 3], String> {
    let mut out = [1; 3];
    let parts: Vec<&str> = text.split(',').collect();
    if parts.len() > 3 {
        return Err("more than three sizes".into());
    }
    for (slot, part) in out.iter_mut().zip(parts) {
        *slot = part.parse().ok().filter(|n| *n > 0).ok_or_else(|| format!("`{part}` is not a size"))?;
    }
    Ok(out)
}
