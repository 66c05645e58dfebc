// SPDX-License-Identifier: Apache-2.0

// Submits a program as a job of two tasks, shows what it prints, and fetches what it leaves.
//
//	client ADDRESS PROGRAM [ARGUMENT...]     CADRE_TLS_DIR: the folder with the client's certificate, if any
package main

import (
	cadre "cadre/v1"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log"
	"os"
	"path/filepath"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
)

var background = context.Background()

// Every failure ends the program, with what the coordinator answered.
func must[T any](value T, err error) T {
	if err != nil && err != io.EOF {
		log.Fatal(err)
	}
	return value
}

func connect(address, folder string) cadre.JobsClient {
	option := grpc.WithInsecure()
	if folder != "" {
		pair := must(tls.LoadX509KeyPair(folder+"/cert.pem", folder+"/key.pem"))
		authority := x509.NewCertPool()
		authority.AppendCertsFromPEM(must(os.ReadFile(folder + "/ca.pem")))
		// Every coordinator's certificate has this name, on whatever host it is.
		option = grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{ServerName: "coordinator.cadre",
			Certificates: []tls.Certificate{pair}, RootCAs: authority}))
	}
	return cadre.NewJobsClient(must(grpc.Dial(address, option)))
}

// The coordinator keeps contents by their hash: one that it has is not sent again.
func upload(jobs cadre.JobsClient, content []byte) []byte {
	sum := sha256.Sum256(content)
	missing := must(jobs.MissingBlobs(background, &cadre.BlobList{Sha256: [][]byte{sum[:]}}))
	if len(missing.Sha256) > 0 {
		stream := must(jobs.PutBlob(background))
		header := &cadre.BlobHeader{Sha256: sum[:], SizeBytes: uint64(len(content))}
		err := stream.Send(&cadre.BlobChunk{Header: header})
		for at := 0; at < len(content) && err == nil; at += 1 << 20 {
			end := min(at+1<<20, len(content))
			err = stream.Send(&cadre.BlobChunk{Data: content[at:end]})
		}
		must(stream.CloseAndRecv())
	}
	return sum[:]
}

func min(a, b int) int {
	if a < b {
		return a
	}
	return b
}

func main() {
	if len(os.Args) < 3 {
		log.Fatal("usage: client ADDRESS PROGRAM [ARGUMENT...]")
	}
	jobs := connect(os.Args[1], os.Getenv("CADRE_TLS_DIR"))
	content := must(os.ReadFile(os.Args[2]))
	program := &cadre.JobFile{Name: filepath.Base(os.Args[2]), Sha256: upload(jobs, content),
		SizeBytes: uint64(len(content)), Executable: true}
	job := must(jobs.Submit(background,
		&cadre.JobSpec{Name: "by Go", Program: program, Arguments: os.Args[3:], Workers: 2})).Id

	states := must(jobs.Watch(background, &cadre.JobRequest{Id: job}))
	info := must(states.Recv())
	for ; info.State <= cadre.JobState_JOB_STATE_STARTING; info = must(states.Recv()) {
		fmt.Printf("job %d waits. %s\n", job, info.Message)
	}
	logs := must(jobs.Logs(background, &cadre.LogsRequest{Id: job, Follow: true}))
	for chunk := must(logs.Recv()); chunk != nil; chunk = must(logs.Recv()) {
		os.Stdout.Write(chunk.Data)
	}
	for next := must(states.Recv()); next != nil; next = must(states.Recv()) {
		info = next
	}
	fmt.Printf("job %d: %s after %d steps. %s\n", job, info.State, info.Position, info.Message)

	for _, output := range must(jobs.ListOutputs(background, &cadre.JobRequest{Id: job})).Outputs {
		target := filepath.Join("outputs", fmt.Sprint(job), filepath.Clean("/"+output.Path)) // never above that folder
		if err := os.MkdirAll(filepath.Dir(target), 0777); err != nil {
			log.Fatal(err)
		}
		file := must(os.Create(target))
		chunks := must(jobs.GetOutput(background, &cadre.GetOutputRequest{Id: job, Path: output.Path}))
		for chunk := must(chunks.Recv()); chunk != nil; chunk = must(chunks.Recv()) {
			must(file.Write(chunk.Data))
		}
		if err := file.Close(); err != nil {
			log.Fatal(err)
		}
		fmt.Println("fetched", target)
	}
	os.Exit(int(info.ExitCode))
}
