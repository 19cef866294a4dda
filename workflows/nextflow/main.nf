// A screen of molsieve as jobs: shards at once, then one merge. README.md says how.
//
//   nextflow run workflows/nextflow --workflow screen.yaml --inputs library.smi --models esol.safetensors --shards 8

include { MOLSIEVE_SHARD } from './modules/molsieve/shard/main'
include { MOLSIEVE_MERGE } from './modules/molsieve/merge/main'

workflow {
    def one = [
        [id: params.id ?: file(params.workflow).baseName],
        file(params.workflow, checkIfExists: true),
        files(params.inputs, checkIfExists: true),
        params.models ? files(params.models, checkIfExists: true) : [],
    ]
    def shards = params.shards as int

    MOLSIEVE_SHARD(Channel.of(0..<shards).map { k -> one + [k, shards] })

    MOLSIEVE_MERGE(
        MOLSIEVE_SHARD.out.shard
            .groupTuple(size: shards)
            .map { _meta, found -> one + [found] }
    )

    MOLSIEVE_SHARD.out.versions
        .first()
        .mix(MOLSIEVE_MERGE.out.versions)
        .collectFile(name: 'versions.yml', storeDir: params.outdir)
}
