// One shard of a workflow of molsieve, as one file. Status 75 is no failure: the shard stopped before its time limit, and the
// next attempt goes on, because its directory is not that of the task but below `ext.state` (default: the run's own work folder).
process MOLSIEVE_SHARD {
    tag "${meta.id} ${shard}/${shards}"
    label 'process_medium'

    conda "${moduleDir}/environment.yml"

    // 75: stopped, goes on. 130 to 145: killed by a signal, such as the scheduler's; what is stored goes on, too.
    errorStrategy { task.exitStatus == 75 || (task.exitStatus >= 130 && task.exitStatus <= 145) ? 'retry' : 'finish' }
    maxRetries 20

    input:
    tuple val(meta), path(workflow_file), path(inputs, stageAs: 'inputs/*'), path(models, stageAs: 'models/*'), val(shard), val(shards)

    output:
    tuple val(meta), path("${prefix}.${shard}.db"), emit: shard
    path 'versions.yml'                           , emit: versions

    when:
    task.ext.when == null || task.ext.when

    script:
    def args = task.ext.args ?: ''
    prefix = task.ext.prefix ?: meta.id
    def state = task.ext.state ?: "${workflow.workDir}/molsieve/${prefix}"
    def files = (inputs instanceof List ? inputs : [inputs]).withIndex().collect { f, i -> "'inputs.${i}.path='\"\$PWD\"'/${f.name}'" }
    def learned = (models instanceof List ? models : [models]).collect { f -> "'models.${f.baseName}.path='\"\$PWD\"'/${f.name}'" }
    """
    molsieve run '${workflow_file.name}' ${(files + learned).join(' ')} \\
        'workdir=${state}' \\
        --shard ${shard}/${shards} --out '${prefix}.${shard}.db' \\
        -j ${task.cpus} --quiet ${args}

    cat <<-END_VERSIONS > versions.yml
    "${task.process}":
        molsieve: \$(molsieve --version | sed 's/^molsieve //')
    END_VERSIONS
    """

    stub:
    prefix = task.ext.prefix ?: meta.id
    """
    touch '${prefix}.${shard}.db'

    cat <<-END_VERSIONS > versions.yml
    "${task.process}":
        molsieve: \$(molsieve --version | sed 's/^molsieve //')
    END_VERSIONS
    """
}
