"""The passes, registered lazily: a pass's module is imported when the pass is first asked for.

The order in which passes run is not here: it is in `pipelines.py` and nowhere else.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

from xdsl.passes import ModulePass

PASSES = {
    "outline-repeats": ".torch.outline_repeats:OutlineRepeatsPass",
    "decompose-torch": ".torch.decompose_torch:DecomposeTorchPass",
    "expand-scatter": ".tensor_ir.expand_scatter:ExpandScatterPass",
    "expand-sort": ".tensor_ir.expand_sort:ExpandSortPass",
    "masks-to-conditions": ".tensor_ir.masks_to_conditions:MasksToConditionsPass",
    "compose-index-maps": ".tensor_ir.compose_index_maps:ComposeIndexMapsPass",
    "lift-to-loops": ".loop.lift_to_loops:LiftToLoopsPass",
    "fuse-loops": ".loop.fuse_loops:FuseLoopsPass",
    "join-kernels": ".loop.join_kernels:JoinKernelsPass",
    "merge-siblings": ".loop.merge_siblings:MergeSiblingsPass",
    "narrow-results": ".loop.narrow_results:NarrowResultsPass",
    "transpose-results": ".loop.transpose_results:TransposeResultsPass",
    "drop-unit-axes": ".loop.drop_unit_axes:DropUnitAxesPass",
    "collapse-reduce": ".loop.collapse_reduce:CollapseReducePass",
    "coalesce-axes": ".loop.coalesce_axes:CoalesceAxesPass",
    "share-sweeps": ".loop.share_sweeps:ShareSweepsPass",
    "hoist-invariants": ".loop.hoist_invariants:HoistInvariantsPass",
    "dedup-loads": ".loop.dedup_loads:DedupLoadsPass",
    "prove-indices": ".loop.prove_indices:ProveIndicesPass",
    "name-kernels": ".loop.name_kernels:NameKernelsPass",
    "transpose-weights": ".loop.transpose_weights:TransposeWeightsPass",
    "flatten-windows": ".loop.flatten_windows:FlattenWindowsPass",
    "tileify": ".tile.tileify:TileifyPass",
    "split": ".schedule.split:SplitPass",
    "bind": ".schedule.bind:BindPass",
    "apply-schedules": ".tile.apply_schedules:ApplySchedulesPass",
    "deepen": ".schedule.deepen:DeepenPass",
    "hint": ".schedule.hint:HintPass",
    "partial": ".schedule.partial:PartialPass",
    "scan": ".schedule.scan:ScanPass",
    "stage": ".schedule.stage:StagePass",
    "fuse": ".schedule.fuse:FusePass",
    "fill": ".schedule.fill:FillPass",
    "pipeline": ".schedule.pipeline:PipelinePass",
    "tensorize": ".schedule.tensorize:TensorizePass",
    "reorder": ".schedule.reorder:ReorderPass",
    "join-lines": ".tile.join_lines:JoinLinesPass",
    "scan-rows": ".tile.scan_rows:ScanRowsPass",
    "schedule": ".tile.schedule:SchedulePass",
    "deepen-launch": ".tile.deepen_launch:DeepenLaunchPass",
    "online-softmax": ".tile.online_softmax:OnlineSoftmaxPass",
    "collapse-rows": ".tile.collapse_rows:CollapseRowsPass",
    "split-axes": ".tile.split_axes:SplitAxesPass",
    "share-prefixes": ".tile.share_prefixes:SharePrefixesPass",
    "schedule-cpu": ".tile.schedule_cpu:ScheduleCpuPass",
    "schedule-rows": ".tile.schedule_rows:ScheduleRowsPass",
    "legacy": ".tile.legacy:LegacyPass",
    "strip-channels": ".tile.strip_channels:StripChannelsPass",
    "order-windows": ".tile.order_windows:OrderWindowsPass",
    "pack-operands": ".tile.pack_operands:PackOperandsPass",
    "split-matmul-k": ".tile.split_matmul_k:SplitMatmulKPass",
    "chunk-matmul-k": ".tile.chunk_matmul_k:ChunkMatmulKPass",
    "register-tile": ".tile.register_tile:RegisterTilePass",
    "distribute-sweeps": ".tile.distribute_sweeps:DistributeSweepsPass",
    "flatten-sweeps": ".tile.flatten_sweeps:FlattenSweepsPass",
    "split-reduce": ".tile.split_reduce:SplitReducePass",
    "chunk-reduce": ".tile.chunk_reduce:ChunkReducePass",
    "cooperative-reduce": ".tile.cooperative_reduce:CooperativeReducePass",
    "keep-rows": ".tile.keep_rows:KeepRowsPass",
    "stage-transposes": ".tile.stage_transposes:StageTransposesPass",
    "blockify-launch": ".tile.blockify_launch:BlockifyLaunchPass",
    "split-loops": ".tile.split_loops:SplitLoopsPass",
    "split-sweeps": ".tile.split_sweeps:SplitSweepsPass",
    "transpose-tiles": ".tile.transpose_tiles:TransposeTilesPass",
    "stage-inputs": ".tile.stage_inputs:StageInputsPass",
    "widen-slabs": ".tile.widen_slabs:WidenSlabsPass",
    "stage-windows": ".tile.stage_windows:StageWindowsPass",
    "warpgroup-mma": ".tile.warpgroup_mma:WarpgroupMmaPass",
    "tensor-cores": ".tile.tensor_cores:TensorCoresPass",
    "permute-register-tile": ".tile.permute_register_tile:PermuteRegisterTilePass",
    "tma-copy": ".tile.tma_copy:TmaCopyPass",
    "split-inner-for-swizzle": ".tile.split_inner_for_swizzle:SplitInnerForSwizzlePass",
    "async-copy": ".tile.async_copy:AsyncCopyPass",
    "pad-smem": ".tile.pad_smem:PadSmemPass",
    "double-buffer": ".tile.double_buffer:DoubleBufferPass",
    "pipeline-k-outer": ".tile.pipeline_k_outer:PipelineKOuterPass",
    "mark-unroll": ".tile.mark_unroll:MarkUnrollPass",
    "straighten-indices": ".tile.straighten_indices:StraightenIndicesPass",
    "form-clusters": ".tile.form_clusters:FormClustersPass",
    "order-blocks": ".tile.order_blocks:OrderBlocksPass",
    "materialize-tile": ".kernel.materialize_tile:MaterializeTilePass",
    "vectorize-accesses": ".kernel.vectorize_accesses:VectorizeAccessesPass",
    "merge-guards": ".kernel.merge_guards:MergeGuardsPass",
    "merge-accesses": ".kernel.merge_accesses:MergeAccessesPass",
    "exchange-stores": ".kernel.exchange_stores:ExchangeStoresPass",
    "roll-registers": ".kernel.roll_registers:RollRegistersPass",
    "elide-barriers": ".kernel.elide_barriers:ElideBarriersPass",
    "overlap-products": ".kernel.overlap_products:OverlapProductsPass",
    "choose-index-width": ".kernel.choose_index_width:ChooseIndexWidthPass",
    "inline-calls": ".kernel.inline_calls:InlineCallsPass",
    "group-launches": ".kernel.group_launches:GroupLaunchesPass",
    "assign-arena": ".kernel.assign_arena:AssignArenaPass",
    "lower-to-cuda": ".kernel.lower_to_cuda:LowerToCudaPass",
    "lower-tile-to-scf": ".llvm.lower_tile_to_scf:LowerTileToScfPass",
    "cut-loops": ".llvm.cut_loops:CutLoopsPass",
    "split-at-sizes": ".llvm.split_at_sizes:SplitAtSizesPass",
    "clip-loops": ".llvm.clip_loops:ClipLoopsPass",
    "narrow-searches": ".llvm.narrow_searches:NarrowSearchesPass",
    "unswitch-loops": ".llvm.unswitch_loops:UnswitchLoopsPass",
    "interchange-columns": ".llvm.interchange_columns:InterchangeColumnsPass",
    "relax-maxima": ".llvm.relax_maxima:RelaxMaximaPass",
    "keep-in-output": ".llvm.keep_in_output:KeepInOutputPass",
    "invert-divisors": ".llvm.invert_divisors:InvertDivisorsPass",
    "prefetch-sweeps": ".llvm.prefetch_sweeps:PrefetchSweepsPass",
    "tile-windows": ".llvm.tile_windows:TileWindowsPass",
    "unroll-windows": ".llvm.unroll_windows:UnrollWindowsPass",
    "hide-strides": ".llvm.hide_strides:HideStridesPass",
    "widen-integers": ".llvm.widen_integers:WidenIntegersPass",
    "jam-rows": ".llvm.jam_rows:JamRowsPass",
    "mask-tails": ".llvm.mask_tails:MaskTailsPass",
    "block-sums": ".llvm.block_sums:BlockSumsPass",
    "small-angles": ".llvm.small_angles:SmallAnglesPass",
    "mark-independent": ".llvm.mark_independent:MarkIndependentPass",
    "expand-math": ".llvm.expand_math:ExpandMathPass",
    "convert-to-mlir": ".mlir.convert_to_mlir:ConvertToMlirPass",
    "loops-to-branches": ".llvm.loops_to_branches:LoopsToBranchesPass",
    "convert-to-llvm": ".llvm.convert_to_llvm:ConvertToLlvmPass",
}
"""Pass name -> "module:class", in the order a program meets them."""


def get_all_passes() -> dict[str, Callable[[], type[ModulePass]]]:
    """Each pass's name with a function that imports and returns its class."""
    return {name: _loader(where) for name, where in PASSES.items()}


def _loader(where: str) -> Callable[[], type[ModulePass]]:
    module, _, attribute = where.partition(":")

    def load() -> type[ModulePass]:
        return getattr(import_module(module, __name__), attribute)

    return load
