// All shards of a workflow of molsieve, merged, and the stages that no shard does: ranking and tables.
process MOLSIEVE_MERGE {
    tag "${meta.id}"
    label 'process_medium'

    conda "${moduleDir}/environment.yml"

    // A merge that was stopped begins again in the next attempt, whose folder is new.
    errorStrategy { task.exitStatus == 75 || (task.exitStatus >= 130 && task.exitStatus <= 145) ? 'retry' : 'finish' }
    maxRetries 3

    input:
    tuple val(meta), path(workflow_file), path(inputs, stageAs: 'inputs/*'), path(models, stageAs: 'models/*'), path(shard_files, stageAs: 'shards/*')

    output:
    tuple val(meta), path("${prefix}/results.db")                              , emit: results
    tuple val(meta), path("${prefix}/*.{csv,sdf,smi}"), optional: true         , emit: tables
    tuple val(meta), path("${prefix}/models/*.safetensors"), optional: true    , emit: models
    path 'versions.yml'                                                        , emit: versions

    when:
    task.ext.when == null || task.ext.when

    script:
    def args = task.ext.args ?: ''
    prefix = task.ext.prefix ?: meta.id
    def files = (inputs instanceof List ? inputs : [inputs]).withIndex().collect { f, i -> "'inputs.${i}.path='\"\$PWD\"'/${f.name}'" }
    def learned = (models instanceof List ? models : [models]).collect { f -> "'models.${f.baseName}.path='\"\$PWD\"'/${f.name}'" }
    def shards = (shard_files instanceof List ? shard_files : [shard_files]).collect { f -> "'${f.name}'" }
    def settings = (files + learned + ["'workdir='\"\$PWD\"'/${prefix}'"]).join(' ')
    """
    molsieve merge '${workflow_file.name}' ${settings} --quiet ${shards.join(' ')}
    molsieve run '${workflow_file.name}' ${settings} -j ${task.cpus} --quiet ${args}

    cat <<-END_VERSIONS > versions.yml
    "${task.process}":
        molsieve: \$(molsieve --version | sed 's/^molsieve //')
    END_VERSIONS
    """

    stub:
    prefix = task.ext.prefix ?: meta.id
    """
    mkdir -p '${prefix}'
    touch '${prefix}/results.db' '${prefix}/hits.csv'

    cat <<-END_VERSIONS > versions.yml
    "${task.process}":
        molsieve: \$(molsieve --version | sed 's/^molsieve //')
    END_VERSIONS
    """
}
